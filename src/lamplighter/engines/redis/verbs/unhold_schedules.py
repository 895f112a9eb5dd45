"""unhold_schedules: let held schedules go on."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.wishes import wish
from lamplighter.port.schedules import ScheduleChanged


async def unhold_schedules(
    call: Call,
    ids: Sequence[str],
    by: str,  # noqa: ARG001 - the operator's name is told by the event
    reason: str,  # noqa: ARG001 - and so is the reason
    tenant: str,
) -> list[ScheduleChanged]:
    """Unhold each, due now."""
    return await wish(call, "unhold_schedules", ids, tenant)
