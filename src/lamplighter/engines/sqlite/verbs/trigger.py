"""trigger: make a run now, whatever the calendar says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.overlap import Judge, Standing, standing_of
from lamplighter.port.schedules import Run, RunKind, RunState, ScheduleAnswer, Triggered
from lamplighter.port.texts import is_nobody

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Row, Transaction

SQL = load("trigger")
CURRENT = load("fire")["current"]


def trigger(tx: Transaction, schedule_id: str, run: Run, tenant: str) -> Triggered:
    """Judge the run as one that is due now."""
    row = None if is_nobody(tenant) else tx.one(CURRENT, json.dumps([(tenant, schedule_id)]))
    if row is None:
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
    standing = standing_of(row)
    earlier = tx.one(SQL["earlier"], standing.number, run.job.id)
    if earlier is not None:
        return _as_before(schedule_id, earlier)
    judge = Judge(tx, [run.job])
    judge.start_queued(standing)
    run = replace(run, due_ms=_free_instant(tx, standing), kind=RunKind.TRIGGER)
    state = judge.judge(standing, run)
    judge.finish()
    wake = tx.now if standing.ended else None
    tx.run(
        SQL["write"], standing.skipped, standing.last_job, standing.active, wake, standing.number
    )
    return Triggered(schedule_id, ScheduleAnswer.DONE, standing.last_job, state)


def _as_before(schedule_id: str, earlier: Row) -> Triggered:
    """Answer for a wish that was granted or refused before, as then."""
    state, job_id = RunState(earlier[0]), earlier[1]
    if job_id is not None and state is not RunState.QUEUED:
        state = RunState.STARTED  # what became of it since is not the trigger's answer
    return Triggered(schedule_id, ScheduleAnswer.DONE, job_id, state)


def _free_instant(tx: Transaction, standing: Standing) -> int:
    """Give now, or the next millisecond that is no occurrence's: not even one's still to come."""
    instant = tx.now
    taken = {due for (due,) in tx.all(SQL["taken"], standing.number, instant)}
    while instant % 1000 == 0 or instant in taken:
        instant += 1
    return instant
