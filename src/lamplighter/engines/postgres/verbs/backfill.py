"""backfill: begin to run occurrences of the past."""

from __future__ import annotations

from lamplighter.engines.postgres.call import Call
from lamplighter.model.ids import schedule_key
from lamplighter.port.schedules import Backfill, ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import backfill_to_text, clean, is_nobody


async def backfill(call: Call, schedule_id: str, wanted: Backfill, tenant: str) -> ScheduleChanged:
    """Begin one, unless one is under way."""
    if is_nobody(tenant):
        return ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN)
    ((answer,),) = await call.rows(
        f"SELECT {call.function('backfill')}(%s, %s)",
        (schedule_key(tenant, clean(schedule_id)), backfill_to_text(wanted)),
    )
    return ScheduleChanged(schedule_id, ScheduleAnswer(answer))
