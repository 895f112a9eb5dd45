"""hold_schedules: keep schedules from being fired."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.wishes import wish
from lamplighter.port.schedules import ScheduleChanged


async def hold_schedules(
    call: Call, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Hold each; the first mark stays."""
    return await wish(call, "hold_schedules", ids, tenant, records.mark_to_text(by, reason))
