"""change: do what an operator asks to jobs, each as a table says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lamplighter.engines.sqlite import moves
from lamplighter.engines.sqlite.statements import load
from lamplighter.model.changes import Action, Changed, Effect, Situation, Table, answers, table_of
from lamplighter.model.job import JobState, base_requirement
from lamplighter.port import texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("change")
_RUN_AGAIN = load("runs")["again"]


class _Job(NamedTuple):
    """A job as it was found."""

    id: str
    seq: int
    state: str
    lane: int
    tenant: str
    due: int
    held: bool
    cancelling: bool
    schedule: str | None

    @property
    def in_turn(self) -> bool:
        """Whether it stands in its turn."""
        return self.state == JobState.WAITING and not self.held

    def situation(self, now: int) -> int:
        held, cancelling = bool(self.held), bool(self.cancelling)
        return Situation(JobState(self.state), held, cancelling, self.due <= now).number


def change(
    tx: Transaction, ids: Sequence[str], table: Table, by: str, reason: str
) -> Mapping[str, int]:
    """Change each job, and return the numbers of the situations in which they were found."""
    found: dict[str, int] = {}
    chosen: dict[Effect, list[_Job]] = {}
    for row in tx.all(SQL["current"], json.dumps(list(ids))):
        job = _Job._make(row)
        number = found[job.id] = job.situation(tx.now)
        chosen.setdefault(Effect(table.effects[number]), []).append(job)
    mark = texts.mark_to_text(by, reason, tx.now)
    for effect, jobs in chosen.items():
        _carry_out(tx, effect, jobs, mark, reason)
    return found


def change_jobs(
    tx: Transaction, ids: Sequence[str], action: Action, by: str, reason: str
) -> list[Changed]:
    """Change jobs as a part of another verb, answering for each in order."""
    table = table_of(action)
    return answers(table, ids, change(tx, ids, table, by, reason))


def _carry_out(
    tx: Transaction, effect: Effect, jobs: Sequence[_Job], mark: str, reason: str
) -> None:
    match effect:
        case Effect.NOTHING:
            pass
        case Effect.END:
            _cancel(tx, jobs, mark, reason)
        case Effect.ASK:
            tx.many(SQL["ask"], [(mark, job.seq) for job in jobs])
        case Effect.HOLD:
            tx.many(SQL["hold"], [(mark, job.seq) for job in jobs])
            moves.leave(tx, [(job.lane, job.tenant) for job in jobs if job.in_turn])
        case Effect.UNHOLD:
            tx.many(SQL["unhold"], [(job.seq,) for job in jobs])
            waiting = [job for job in jobs if job.state == JobState.WAITING]
            moves.enter(tx, [(job.lane, job.tenant, job.due, job.seq) for job in waiting])
        case Effect.DUE_NOW:
            tx.many(SQL["due_now"], [(tx.now, job.seq) for job in jobs])
            standing = [job for job in jobs if job.in_turn]
            moves.enter(tx, [(job.lane, job.tenant, tx.now, job.seq) for job in standing])
        case Effect.RESUME | Effect.RESTART:
            _revive(tx, jobs, lives=int(effect is Effect.RESTART))
        case Effect.REMOVE:
            moves.remove(tx, [(job.seq, job.id) for job in jobs])
        case Effect.ERASE:
            _erase(tx, jobs)


def _cancel(tx: Transaction, jobs: Sequence[_Job], mark: str, reason: str) -> None:
    why = texts.clean(reason) or "cancelled"
    tx.many(SQL["cancel"], [(tx.now, mark, why, job.seq) for job in jobs])
    moves.leave(tx, [(job.lane, job.tenant) for job in jobs if job.in_turn])
    moves.end(tx, [(job.id, JobState.CANCELLED, job.schedule) for job in jobs])


def _revive(tx: Transaction, jobs: Sequence[_Job], *, lives: int) -> None:
    """Let jobs that have ended run again, so many lives later."""
    places: list[moves.Place] = []
    for job in jobs:
        if job.state == JobState.SUCCEEDED:
            tx.run(SQL["keep_success"], job.seq)
        base = base_requirement(tx.catalog.by_id(job.lane).requirement)
        lane = tx.catalog.beside(tx, job.lane, base)
        tx.run(SQL["revive"], tx.now, lane, lives, job.seq)
        if lives:
            tx.run(moves.SQL["remove_progress"], job.id)
        if job.schedule is not None:
            tx.run(_RUN_AGAIN, job.id)
        places.append((lane, job.tenant, tx.now, job.seq))
    moves.enter(tx, places)


def _erase(tx: Transaction, jobs: Sequence[_Job]) -> None:
    """Remove jobs with their idempotency keys, and write over where they stood."""
    tx.all(SQL["write_over"])
    try:
        tx.many(SQL["key"], [(job.seq, job.id) for job in jobs])
        moves.remove(tx, [(job.seq, job.id) for job in jobs])
    finally:
        tx.all(SQL["write_over_no_more"])
