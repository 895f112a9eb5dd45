"""put_schedules, hold_schedules, unhold_schedules, delete_schedules, backfill, trigger."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.change import change
from lamplighter.engines.sqlite.verbs.overlap import Judge, Standing, standings
from lamplighter.model.changes import Action, table_of
from lamplighter.port import texts
from lamplighter.port.schedules import (
    Put,
    PutAnswer,
    Run,
    RunKind,
    RunState,
    ScheduleAnswer,
    ScheduleChanged,
    Triggered,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.port.schedules import Backfill, NewSchedule

SQL = load("schedules")
_QUEUED = load("runs")["queued"]

What = tuple[str, str]
"""Spec and type: what makes schedules of one key equal."""


# ── put ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Known:
    """A schedule as a put finds it; updated when one call names it twice."""

    number: int
    version: int
    what: What


def put_schedules(tx: Transaction, schedules: Sequence[NewSchedule]) -> list[Put]:
    """Put each, in order."""
    keys = json.dumps([(schedule.tenant, schedule.id) for schedule in schedules])
    known = {row[:2]: _Known(row[2], row[3], row[4:]) for row in tx.all(SQL["known"], keys)}
    return [_put(tx, schedule, known) for schedule in schedules]


def _put(tx: Transaction, schedule: NewSchedule, known: dict[tuple[str, str], _Known]) -> Put:
    key, what = (schedule.tenant, schedule.id), (schedule.spec, schedule.type)
    values = (*what, schedule.due_ms, schedule.zones, tx.now)
    found = known.get(key)
    refused = _refused(schedule, found, what)
    if refused is not None:
        return refused
    if found is None:
        number = tx.number(SQL["insert"], *key, *values, _cursor(tx.now, schedule.first_ms))
        known[key] = _Known(number, 1, what)
        return Put(schedule.id, PutAnswer.CREATED, 1)
    if found.what == what:
        return Put(schedule.id, PutAnswer.ALREADY, found.version)
    tx.run(SQL["change"], *values, found.number)
    found.version, found.what = found.version + 1, what
    return Put(schedule.id, PutAnswer.CHANGED, found.version)


def _refused(schedule: NewSchedule, found: _Known | None, what: What) -> Put | None:
    """Say what keeps it from being put, if what is known is not what was expected."""
    version = schedule.expect_version
    if found is None:
        return None if version is None else Put(schedule.id, PutAnswer.UNKNOWN, 0)
    if version is not None and found.version != version and found.what != what:
        return Put(schedule.id, PutAnswer.CONFLICT, found.version)
    return None


def _cursor(now: int, first_ms: int | None) -> int:
    """Begin now; or before a first occurrence that is past by now, for then it was missed."""
    return now if first_ms is None else min(now, first_ms - 1)


# ── hold, unhold, delete, backfill ───────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Current:
    """A schedule as an operator's verb finds it; updated when one call names it twice."""

    number: int
    held: bool
    backfill: Backfill | None
    gone: bool = False


def _each(
    tx: Transaction,
    ids: Sequence[str],
    tenant: str,
    decide: Callable[[_Current], ScheduleAnswer],
) -> list[ScheduleChanged]:
    """Let ``decide`` act on each schedule of the tenant; it may change what it is given."""
    if texts.is_nobody(tenant):
        return [ScheduleChanged(one, ScheduleAnswer.UNKNOWN) for one in ids]
    rows = tx.all(SQL["current"], json.dumps(list(ids)), tenant)
    found = {row[0]: _Current(row[1], bool(row[2]), texts.backfill_of(row[3])) for row in rows}
    answers: list[ScheduleChanged] = []
    for schedule_id in ids:
        schedule = found.get(schedule_id)
        if schedule is None or schedule.gone:
            answers.append(ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN))
        else:
            answers.append(ScheduleChanged(schedule_id, decide(schedule)))
    return answers


def hold_schedules(
    tx: Transaction, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Hold each; the first mark stays."""
    mark = texts.mark_to_text(by, reason, tx.now)

    def decide(schedule: _Current) -> ScheduleAnswer:
        if schedule.held:
            return ScheduleAnswer.ALREADY
        tx.run(SQL["hold"], mark, schedule.number)
        schedule.held = True
        return ScheduleAnswer.DONE

    return _each(tx, ids, tenant, decide)


def unhold_schedules(
    tx: Transaction,
    ids: Sequence[str],
    by: str,  # noqa: ARG001 - the operator's name is told by the event
    reason: str,  # noqa: ARG001 - as above
    tenant: str,
) -> list[ScheduleChanged]:
    """Unhold each, due now."""

    def decide(schedule: _Current) -> ScheduleAnswer:
        if not schedule.held:
            return ScheduleAnswer.ALREADY
        tx.run(SQL["unhold"], tx.now, schedule.number)
        schedule.held = False
        return ScheduleAnswer.DONE

    return _each(tx, ids, tenant, decide)


def delete_schedules(
    tx: Transaction, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Remove each, and cancel its queued jobs."""
    queued: list[str] = []

    def decide(schedule: _Current) -> ScheduleAnswer:
        queued.extend(job_id for _, job_id in tx.all(_QUEUED, schedule.number, None))
        tx.run(SQL["delete"], schedule.number)
        tx.run(SQL["leave_runs"], schedule.number)
        schedule.gone = True
        return ScheduleAnswer.DONE

    answers = _each(tx, ids, tenant, decide)
    change(tx, queued, table_of(Action.CANCEL), by, reason)
    return answers


def backfill(tx: Transaction, schedule_id: str, wanted: Backfill, tenant: str) -> ScheduleChanged:
    """Note which occurrences of the past are to be run, unless something is under way."""

    def decide(schedule: _Current) -> ScheduleAnswer:
        if schedule.backfill is not None:
            same = _range(schedule.backfill) == _range(wanted)
            return ScheduleAnswer.ALREADY if same else ScheduleAnswer.CONFLICT
        tx.run(SQL["backfill"], texts.backfill_to_text(wanted), tx.now, schedule.number)
        return ScheduleAnswer.DONE

    (answer,) = _each(tx, [schedule_id], tenant, decide)
    return answer


def _range(backfill: Backfill) -> tuple[int, int, int]:
    """Return what was asked for, without how far it has come."""
    return backfill.from_ms, backfill.to_ms, backfill.limit


# ── trigger ──────────────────────────────────────────────────────────────────────────────────


def trigger(tx: Transaction, schedule_id: str, run: Run, tenant: str) -> Triggered:
    """Make a run now, whatever the calendar says, and judge it as one that is due."""
    found = {} if texts.is_nobody(tenant) else standings(tx, [(tenant, schedule_id)])
    standing = found.get((tenant, schedule_id))
    if standing is None:
        return Triggered(schedule_id, ScheduleAnswer.UNKNOWN)
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
        SQL["triggered"],
        standing.skipped, standing.last_job, standing.active, wake, standing.number,
    )  # fmt: skip
    return Triggered(schedule_id, ScheduleAnswer.DONE, standing.last_job, state)


def _as_before(schedule_id: str, earlier: Row) -> Triggered:
    """Answer for a wish that was granted or refused before, as then."""
    state, job_id = RunState(earlier[0]), earlier[1]
    if job_id is not None and state is not RunState.QUEUED:
        state = RunState.STARTED  # what became of it since is not the trigger's answer
    return Triggered(schedule_id, ScheduleAnswer.DONE, job_id, state)


def _free_instant(tx: Transaction, standing: Standing) -> int:
    """Return now, or the next millisecond that is no occurrence's: not even one's still to come."""
    instant = tx.now
    taken = {due for (due,) in tx.all(SQL["taken"], standing.number, instant)}
    while instant % 1000 == 0 or instant in taken:
        instant += 1
    return instant
