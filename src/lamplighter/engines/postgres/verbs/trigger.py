"""trigger: a run of a schedule now."""

from __future__ import annotations

from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.fire import BATCH, CANCEL_MARK, QUEUED_MARK, WHY
from lamplighter.engines.postgres.verbs.submit import columns
from lamplighter.model.ids import schedule_key
from lamplighter.port import texts
from lamplighter.port.schedules import Run, RunState, ScheduleAnswer, Triggered

_REPLACED = "replaced"


async def trigger(call: Call, schedule_id: str, run: Run, tenant: str) -> Triggered:
    """Make a run, or say what became of the one with this job."""
    if texts.is_nobody(tenant):
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    ((known, state, why),) = await call.rows(
        f"SELECT * FROM {call.function('trigger')}"
        f"(%s, %s, ROW({BATCH})::{call.function('job_batch')}, %s, %s)",
        (
            schedule_key(tenant, texts.clean(schedule_id)),
            run.overlap.value,
            *columns([run.job]),
            QUEUED_MARK,
            CANCEL_MARK,
            WHY,
        ),
    )
    if not known:
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    made = state != RunState.SKIPPED or why == _REPLACED
    return Triggered(
        schedule_id, ScheduleAnswer.DONE, run.job.id if made else None, RunState(state)
    )
