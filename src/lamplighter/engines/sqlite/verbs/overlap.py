"""What becomes of a run while another of its schedule goes on. Shared by fire and trigger."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.change import change_jobs
from lamplighter.engines.sqlite.verbs.submit import store, without_known
from lamplighter.model.changes import Action
from lamplighter.model.job import TERMINAL, JobState
from lamplighter.port.schedules import BEHIND_A_RUN, Overlap, Run, RunKind, RunState
from lamplighter.port.values import ChangeAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.model.job import NewJob
    from lamplighter.port.values import Submitted

SQL = load("runs")
BY = "schedule"
"""Who holds and cancels what a plan says."""
_REPLACED = "replaced"
_OVERLAP = (RunState.SKIPPED, "overlap")
_QUEUE_FULL = (RunState.SKIPPED, "queue_full")
_QUEUED = (RunState.QUEUED, None)
_STARTED = (RunState.STARTED, None)


@dataclass(slots=True)
class Standing:
    """A schedule while its runs are judged, and what came of it so far."""

    id: str
    number: int
    version: int
    cursor: int
    active: str | None
    goes_on: bool
    """Whether the active run has not ended."""
    queues: bool
    """Whether there were queued runs at first."""
    started: list[str] = field(default_factory=list[str])
    queued: int = 0
    fired: int = 0
    backfilled: int = 0
    """New jobs of a backfill."""
    skipped: int = 0
    last_due: int | None = None
    last_job: str | None = None
    ended: bool = False
    """Whether one of its jobs has ended while they were judged."""

    def resolve(self, due: int) -> None:
        """Note that an occurrence was fired or skipped."""
        self.last_due = due if self.last_due is None else max(self.last_due, due)


def standings(tx: Transaction, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Standing]:
    """Read those of these schedules that exist, by tenant and id."""
    found: dict[tuple[str, str], Standing] = {}
    for row in tx.all(SQL["standing"], json.dumps(keys)):
        tenant, schedule_id, number, version, cursor, active, state, queues = row
        found[tenant, schedule_id] = Standing(
            id=schedule_id,
            number=number,
            version=version,
            cursor=cursor,
            active=active,
            goes_on=state is not None and state not in TERMINAL,
            queues=bool(queues),
        )
    return found


class Judge:
    """Writes the runs of many schedules one after the other, and their jobs at the end."""

    def __init__(self, tx: Transaction, jobs: Sequence[NewJob]) -> None:
        """Take the jobs of all runs that will be judged, to see which of them exist."""
        self._tx = tx
        self._new: list[NewJob] = []
        answers: list[Submitted | None] = [None] * len(jobs)
        without_known(tx, jobs, answers)
        self._known = {
            job.id: answer.id
            for job, answer in zip(jobs, answers, strict=True)
            if answer is not None
        }

    def start_queued(self, standing: Standing) -> None:
        """Start the first that is queued, if nothing goes on that it would have to wait for."""
        if standing.goes_on or not standing.queues:
            return
        while (row := self._tx.one(SQL["first_queued"], standing.number)) is not None:
            due, job_id = row
            (said,) = change_jobs(self._tx, [job_id], Action.UNHOLD, BY, "")
            if said.answer in (ChangeAnswer.DONE, ChangeAnswer.ALREADY):
                self._become(standing, due, RunState.STARTED)
                standing.active, standing.goes_on = job_id, True
                standing.started.append(job_id)
                return
            # Its end was not told, or it is gone: it must not stand before the others for ever.
            ended = said.state or JobState.CANCELLED
            self._become(standing, due, RunState(ended.value), self._tx.now)

    def judge(self, standing: Standing, run: Run) -> RunState | None:
        """Write one run; None: its occurrence has one already."""
        free = run.overlap is Overlap.ALLOW or run.kind is RunKind.BACKFILL
        waits = (standing.goes_on or standing.queued > 0) and not free
        state, reason = self._verdict(standing, run) if waits else _STARTED
        skipped = state is RunState.SKIPPED
        asked = run.job.id if skipped and run.kind is RunKind.TRIGGER else None
        job_id = None if skipped else self._known.get(run.job.id, run.job.id)
        written = self._tx.run(
            SQL["insert_past" if run.kind is RunKind.BACKFILL else "insert"],
            standing.number, run.due_ms, run.kind.value, state.value, self._tx.now, job_id, asked,
            reason,
        )  # fmt: skip
        if not written:
            return None
        if run.kind is RunKind.DUE:
            standing.resolve(run.due_ms)
        if job_id is None:
            standing.skipped += 1
            return state
        if state is RunState.QUEUED and run.overlap is Overlap.CANCEL_RUNNING:
            self._replace(standing, run.due_ms)
        over = self._make(standing, run, job_id, state)
        if state is RunState.STARTED and not free:
            standing.active, standing.goes_on = job_id, not over
        return state

    def finish(self) -> None:
        """Write the jobs."""
        if self._new:
            store(self._tx, self._new, BEHIND_A_RUN)
            self._new = []

    def _verdict(self, standing: Standing, run: Run) -> tuple[RunState, str | None]:
        """Decide about a run while another goes on."""
        match run.overlap:
            case Overlap.SKIP:
                return _OVERLAP
            case Overlap.QUEUE_ONE if self._tx.one(SQL["first_queued"], standing.number):
                return _QUEUE_FULL
            case _:
                return _QUEUED

    def _make(self, standing: Standing, run: Run, job_id: str, state: RunState) -> bool:
        """Make the job of a run; whether that is over, as only one that existed can be."""
        if run.kind is RunKind.DUE:
            standing.fired += 1
        if run.kind is not RunKind.BACKFILL:
            standing.last_job = job_id
        queued = state is RunState.QUEUED
        if run.job.id not in self._known:
            self._new.append(replace(run.job, held=True) if queued else run.job)
            standing.backfilled += run.kind is RunKind.BACKFILL
            if not queued:
                standing.started.append(job_id)
        elif self._over(standing, run.due_ms, job_id):
            return True
        standing.queued += queued
        return False

    def _over(self, standing: Standing, due: int, job_id: str) -> bool:
        """Write the end that the job of a run has had already; whether it has."""
        self.finish()
        row = self._tx.one(SQL["job"], job_id)
        if row is not None and row[0] not in TERMINAL:
            return False
        state, finished = row or (RunState.CANCELLED, self._tx.now)
        self._become(standing, due, RunState(state), finished)
        return True

    def _replace(self, standing: Standing, due: int) -> None:
        """Cancel what goes on and what is queued, but for the run that is due then."""
        self.finish()
        queued = self._tx.all(SQL["queued"], standing.number, due)
        ids = [standing.active or "", *(job_id for _, job_id in queued)]
        active, *_ = answers = change_jobs(self._tx, ids, Action.CANCEL, BY, _REPLACED)
        self._tx.many(SQL["replaced"], [(standing.number, before) for before, _ in queued])
        standing.skipped += len(queued)
        standing.ended |= any(one.answer is ChangeAnswer.DONE for one in answers)
        standing.queued = 0
        standing.goes_on = active.state is not None and active.state not in TERMINAL
        if not standing.goes_on and active.id in standing.started:
            standing.started.remove(active.id)

    def _become(
        self, standing: Standing, due: int, state: RunState, finished: int | None = None
    ) -> None:
        self._tx.run(SQL["become"], state.value, finished, standing.number, due)
