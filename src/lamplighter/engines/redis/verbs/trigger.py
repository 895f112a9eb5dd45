"""trigger: make a run of a schedule now."""

from __future__ import annotations

from typing import Any

from lamplighter.engines.redis import inputs
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.schedule_records import OVERLAPS, STATES, check_id
from lamplighter.engines.redis.shards import shard_of_schedule
from lamplighter.engines.redis.verbs.fire import check_run, jobs_of
from lamplighter.model.ids import schedule_key
from lamplighter.port.schedules import Run, ScheduleAnswer, Triggered
from lamplighter.port.texts import is_nobody

_UNKNOWN, _AGAIN = b"unknown", b"again"


async def trigger(call: Call, schedule_id: str, run: Run, tenant: str) -> Triggered:
    """Let the store judge the run as one that is due now."""
    check_id(schedule_id)
    check_run(tenant, schedule_id, run, call.shards)
    if is_nobody(tenant):
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    try:
        job = jobs_of([(schedule_id, run)])
        arguments = (*job, schedule_key(tenant, schedule_id), OVERLAPS[run.overlap])
    except inputs.Unkept as error:
        raise inputs.refusal(error) from error
    said: list[Any] = [_AGAIN]
    while said[0] == _AGAIN:
        shard = shard_of_schedule(tenant, schedule_id, call.shards)
        said = await call.run("trigger", arguments, shard=shard)
    if said[0] == _UNKNOWN:
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    _, state, has_job = said
    job_id = run.job.id if has_job else None
    return Triggered(schedule_id, ScheduleAnswer.DONE, job_id, STATES[state])
