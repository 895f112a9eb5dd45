"""backfill: begin to run occurrences of the past."""

from __future__ import annotations

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.schedule_records import backfill_to_text, is_id, same_backfill
from lamplighter.engines.redis.shards import shard_of_schedule
from lamplighter.port.schedules import Backfill, ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import is_nobody


async def begin_backfill(
    call: Call, schedule_id: str, backfill: Backfill, tenant: str | None
) -> ScheduleChanged:
    """Note what is to be run, unless something is under way."""
    if not is_id(schedule_id) or is_nobody(tenant):
        return ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN)
    said: bytes = await call.run(
        "backfill",
        (schedule_id, tenant or "", same_backfill(backfill), backfill_to_text(backfill)),
        shard=shard_of_schedule(schedule_id, call.shards),
    )
    return ScheduleChanged(schedule_id, ScheduleAnswer(said.decode()))
