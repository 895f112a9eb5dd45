"""backfill: begin to run occurrences of the past."""

from __future__ import annotations

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.schedule_records import backfill_to_text, is_id, same_backfill
from lamplighter.engines.redis.shards import shard_of_schedule
from lamplighter.model.ids import schedule_key
from lamplighter.port.schedules import Backfill, ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import is_nobody


async def backfill(call: Call, schedule_id: str, wanted: Backfill, tenant: str) -> ScheduleChanged:
    """Note what is to be run, unless something is under way."""
    if not is_id(schedule_id) or is_nobody(tenant):
        return ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN)
    said: bytes = await call.run(
        "backfill",
        (schedule_key(tenant, schedule_id), same_backfill(wanted), backfill_to_text(wanted)),
        shard=shard_of_schedule(tenant, schedule_id, call.shards),
    )
    return ScheduleChanged(schedule_id, ScheduleAnswer(said.decode()))
