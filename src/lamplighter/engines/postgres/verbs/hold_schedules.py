"""hold_schedules: keep schedules from being fired."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.wishes import ALREADY, DONE, change
from lamplighter.port.schedules import ScheduleChanged


async def hold_schedules(
    call: Call, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Hold each; the first mark stays."""
    mark = records.mark_to_text(by, reason)
    return await change(call, "hold_schedules", ids, tenant, mark, again={DONE: ALREADY})
