"""unhold_schedules: let held schedules go on."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.wishes import ALREADY, DONE, change
from lamplighter.port.schedules import ScheduleChanged


async def unhold_schedules(
    call: Call,
    ids: Sequence[str],
    by: str,  # noqa: ARG001 - the operator's name is told by the event
    reason: str,  # noqa: ARG001
    tenant: str,
) -> list[ScheduleChanged]:
    """Unhold each, due now."""
    return await change(call, "unhold_schedules", ids, tenant, again={DONE: ALREADY})
