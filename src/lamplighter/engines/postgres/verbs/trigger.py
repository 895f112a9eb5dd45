"""trigger: a run of a schedule now."""

from __future__ import annotations

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.fire import QUEUED_MARK
from lamplighter.engines.postgres.verbs.submit import columns
from lamplighter.port import texts
from lamplighter.port.schedules import Run, RunState, ScheduleAnswer, Triggered

_PARAMETERS = ", ".join(["%s"] * 22)
_REPLACED = "replaced"


async def trigger(
    call: Call, schedule_id: str, run: Run, by: str, reason: str, *, tenant: str | None
) -> Triggered:
    """Make a run, or say what became of the one with this job."""
    if texts.is_nobody(tenant):
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    ((known, state, why),) = await call.rows(
        f"SELECT * FROM {call.function('trigger')}({_PARAMETERS})",
        (
            texts.clean(schedule_id),
            tenant,
            run.overlap.value,
            *columns([run.job]),
            QUEUED_MARK,
            records.mark_to_text(by, reason),
            texts.clean(reason) or "cancelled",
        ),
    )
    if not known:
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    made = state != RunState.SKIPPED or why == _REPLACED
    return Triggered(
        schedule_id, ScheduleAnswer.DONE, run.job.id if made else None, RunState(state)
    )
