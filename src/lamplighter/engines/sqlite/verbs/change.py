"""change: do what an operator asks to jobs, each as a table says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import records, runs, turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.model.changes import Action, Changed, Effect, Situation, Table, answers, table_of
from lamplighter.model.job import JobState, base_requirement
from lamplighter.port import texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction

SQL = load("change")


@dataclass(slots=True)
class _Job:
    """A job as it was found."""

    id: str
    seq: int
    state: JobState
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
        return Situation(
            JobState(self.state), bool(self.held), bool(self.cancelling), self.due <= now
        ).number


def change(
    tx: Transaction, ids: Sequence[str], table: Table, by: str, reason: str
) -> Mapping[str, int]:
    """Change each job, and return the numbers of the situations in which they were found."""
    found: dict[str, int] = {}
    chosen: dict[Effect, list[_Job]] = {}
    for row in tx.all(SQL["current"], json.dumps(list(ids))):
        job = _Job(*row)
        number = found[job.id] = job.situation(tx.now)
        chosen.setdefault(Effect(table.effects[number]), []).append(job)
    mark = records.mark_to_text(by, reason, tx.now)
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
            _end(tx, jobs, mark, reason)
        case Effect.ASK:
            tx.many(SQL["ask"], [(mark, job.seq) for job in jobs])
        case Effect.HOLD:
            tx.many(SQL["hold"], [(mark, job.seq) for job in jobs])
            turns.recount(tx, [(job.lane, job.tenant) for job in jobs if job.in_turn])
        case Effect.UNHOLD:
            tx.many(SQL["unhold"], [(job.seq,) for job in jobs])
            waiting = [job for job in jobs if job.state == JobState.WAITING]
            turns.place(tx, [(job.lane, job.tenant, job.due, job.seq) for job in waiting])
        case Effect.DUE_NOW:
            tx.many(SQL["due_now"], [(tx.now, job.seq) for job in jobs])
            standing = [job for job in jobs if job.in_turn]
            turns.place(tx, [(job.lane, job.tenant, tx.now, job.seq) for job in standing])
        case Effect.RESUME | Effect.RESTART:
            _run_again(tx, jobs, lives=int(effect is Effect.RESTART))
        case Effect.REMOVE:
            remove(tx, [(job.seq, job.id) for job in jobs])
        case Effect.ERASE:
            _erase(tx, jobs)


def _end(tx: Transaction, jobs: Sequence[_Job], mark: str, reason: str) -> None:
    why = texts.clean(reason) or "cancelled"
    tx.many(SQL["end"], [(tx.now, mark, why, job.seq) for job in jobs])
    turns.recount(tx, [(job.lane, job.tenant) for job in jobs if job.in_turn])
    ends = [(job.id, JobState.CANCELLED.value) for job in jobs if job.schedule is not None]
    if ends:
        runs.ended(tx, ends)


def _run_again(tx: Transaction, jobs: Sequence[_Job], *, lives: int) -> None:
    """Let jobs that have ended run again, so many lives later."""
    places: list[tuple[int, str, int, int]] = []
    for job in jobs:
        if job.state == JobState.SUCCEEDED:
            tx.run(SQL["keep_success"], job.seq)
        lane = tx.catalog.by_id(job.lane)
        base = base_requirement(lane.requirement)
        if base != lane.requirement:
            job.lane = tx.catalog.lane(tx, lane.queue, lane.level, lane.type, base).id
        tx.run(SQL["run_again"], tx.now, job.lane, lives, job.seq)
        if lives:
            tx.run(SQL["progress"], job.id)
        if job.schedule is not None:
            runs.again(tx, job.id)
        places.append((job.lane, job.tenant, tx.now, job.seq))
    turns.place(tx, places)


def _erase(tx: Transaction, jobs: Sequence[_Job]) -> None:
    """Remove jobs with their idempotency keys, and write over where they stood."""
    tx.all(SQL["write_over"])
    try:
        tx.many(SQL["key"], [(job.seq, job.id) for job in jobs])
        remove(tx, [(job.seq, job.id) for job in jobs])
    finally:
        tx.all(SQL["leave"])


def remove(tx: Transaction, jobs: Sequence[Row]) -> None:
    """Delete jobs, given as (seq, id), with their history, logs and progress."""
    tx.many(SQL["remove"], [(seq,) for seq, _ in jobs])
    ids = [(job_id,) for _, job_id in jobs]
    for kept in ("history", "log", "progress"):
        tx.many(SQL[kept], ids)
