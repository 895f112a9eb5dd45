"""Schedules as the contract has them, in dictionaries: what an engine is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lamplighter.model.job import TERMINAL, JobState
from lamplighter.port.schedules import (
    FireAnswer,
    Fired,
    Overlap,
    RunKind,
    RunState,
    ScheduleAnswer,
    Triggered,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.port.schedules import Backfill, Firing, Run, Skip


@dataclass(slots=True)
class ModelJob:
    """A job of a schedule."""

    schedule: str
    due_ms: int
    state: JobState = JobState.WAITING
    held: bool = False
    cancelling: bool = False

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL


@dataclass(slots=True)
class ModelRun:
    """A run; only what must agree."""

    kind: RunKind
    state: RunState
    at_ms: int
    job_id: str | None = None
    reason: str | None = None
    count: int | None = 1
    first_ms: int | None = None
    finished_at_ms: int | None = None
    asked: str | None = None
    """The job that a trigger asked for, though it was skipped."""


@dataclass(slots=True)
class ModelSchedule:
    """A schedule with its runs by their due times."""

    cursor_ms: int
    due_ms: int | None
    version: int = 1
    fired: int = 0
    skipped: int = 0
    failures: int = 0
    held: bool = False
    backfill: Backfill | None = None
    active: str | None = None
    runs: dict[int, ModelRun] = field(default_factory=dict[int, ModelRun])

    def queued(self) -> list[ModelRun]:
        """Return the queued runs, the earliest due first."""
        return [run for _, run in sorted(self.runs.items()) if run.state is RunState.QUEUED]

    def covers(self, skip: Skip) -> bool:
        """Tell whether a run or a skip stands where this one would."""
        if skip.due_ms in self.runs:
            return True
        return any(
            run.first_ms is not None and run.first_ms <= skip.first_ms and skip.due_ms <= due
            for due, run in self.runs.items()
        )


@dataclass(slots=True)
class Outcome:
    """What one plan came to."""

    started: list[str] = field(default_factory=list[str])
    queued: int = 0
    skipped: int = 0
    backfilled: int = 0
    ended: bool = False


class ScheduleReference:
    """The verbs on dictionaries. Jobs are those that runs have made."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.schedules: dict[str, ModelSchedule] = {}
        self.jobs: dict[str, ModelJob] = {}
        self.woken: set[str] = set()
        """Schedules that must be due, because a job of theirs has ended."""

    # ── fire and trigger ─────────────────────────────────────────────────────────────────────

    def fire(self, firing: Firing) -> Fired:
        known = self.schedules.get(firing.id)
        if known is None or (known.version, known.cursor_ms) != (firing.version, firing.cursor_ms):
            return Fired(firing.id, FireAnswer.STALE)
        self.woken.discard(firing.id)
        outcome = Outcome()
        self._start_queued(known, outcome)
        for skip in firing.skips:
            if not known.covers(skip):
                known.runs[skip.due_ms] = ModelRun(
                    RunKind.DUE,
                    RunState.SKIPPED,
                    self.now_ms(),
                    reason=skip.reason,
                    count=skip.count,
                    first_ms=skip.first_ms,
                )
                outcome.skipped += skip.count or 1
        for run in firing.runs:
            self._judge(firing.id, run.due_ms, run, outcome)
        holds = firing.hold is not None and not known.held
        left = firing.backfill
        if left is not None:
            left = replace(left, made=left.made + outcome.backfilled)
        known.version += holds or known.backfill != left
        known.cursor_ms, known.due_ms = firing.next_cursor_ms, firing.due_ms
        known.held, known.backfill = known.held or holds, left
        known.skipped += outcome.skipped
        if outcome.ended:
            self.woken.add(firing.id)
        return Fired(
            firing.id, FireAnswer.DONE, tuple(outcome.started), outcome.queued, outcome.skipped
        )

    def trigger(self, schedule: str, run: Run) -> Triggered:
        known = self.schedules[schedule]
        for one in known.runs.values():
            if run.job.id in {one.job_id, one.asked}:
                state = one.state if one.state in {RunState.QUEUED, RunState.SKIPPED} else None
                return Triggered(
                    schedule, ScheduleAnswer.DONE, one.job_id, state or RunState.STARTED
                )
        outcome = Outcome()
        self._start_queued(known, outcome)
        due_ms = self.now_ms()
        while due_ms % 1000 == 0 or due_ms == known.due_ms or due_ms in known.runs:
            due_ms += 1
        self._judge(schedule, due_ms, run, outcome)
        known.skipped += outcome.skipped
        if outcome.ended:
            self.woken.add(schedule)
        made = known.runs[due_ms]
        return Triggered(schedule, ScheduleAnswer.DONE, made.job_id, made.state)

    def _start_queued(self, known: ModelSchedule, outcome: Outcome) -> None:
        if self._goes_on(known) or not (waiting := known.queued()):
            return
        first = waiting[0]
        assert first.job_id is not None
        first.state, known.active = RunState.STARTED, first.job_id
        self.jobs[first.job_id].held = False
        outcome.started.append(first.job_id)

    def _judge(self, schedule: str, due_ms: int, run: Run, outcome: Outcome) -> None:
        known = self.schedules[schedule]
        before = known.runs.get(due_ms)
        replaces = before is not None and before.state is RunState.SKIPPED
        if before is not None and not (replaces and run.kind is RunKind.BACKFILL):
            return
        free = run.overlap is Overlap.ALLOW or run.kind is RunKind.BACKFILL
        made = ModelRun(run.kind, RunState.STARTED, self.now_ms())
        if (self._goes_on(known) or known.queued()) and not free:
            made.state, made.reason = self._verdict(known, run)
        if made.state is RunState.SKIPPED:
            made.asked = run.job.id if run.kind is RunKind.TRIGGER else None
            outcome.skipped += 1
        else:
            if made.state is RunState.QUEUED and run.overlap is Overlap.CANCEL_RUNNING:
                self._replace(known, outcome)
            outcome.backfilled += run.kind is RunKind.BACKFILL and run.job.id not in self.jobs
            made.job_id = self._make(schedule, run, held=made.state is RunState.QUEUED)
            known.fired += run.kind is RunKind.DUE
            outcome.queued += made.state is RunState.QUEUED
            if made.state is RunState.STARTED:
                outcome.started.append(run.job.id)
                known.active = known.active if free else run.job.id
        known.runs[due_ms] = made

    def _verdict(self, known: ModelSchedule, run: Run) -> tuple[RunState, str | None]:
        if run.overlap is Overlap.SKIP:
            return RunState.SKIPPED, "overlap"
        if run.overlap is Overlap.QUEUE_ONE and known.queued():
            return RunState.SKIPPED, "queue_full"
        return RunState.QUEUED, None

    def _replace(self, known: ModelSchedule, outcome: Outcome) -> None:
        assert known.active is not None
        if self.jobs[known.active].state is JobState.RUNNING:
            self.jobs[known.active].cancelling = True
        elif self._goes_on(known):
            self._end(known.active, JobState.CANCELLED)
            outcome.ended = True
            if known.active in outcome.started:
                outcome.started.remove(known.active)
        outcome.queued = 0
        for run in known.queued():
            assert run.job_id is not None
            self.jobs[run.job_id].state = JobState.CANCELLED
            run.state, run.reason = RunState.SKIPPED, "replaced"
            outcome.skipped += 1
            outcome.ended = True

    def _make(self, schedule: str, run: Run, *, held: bool) -> str:
        due_ms = max(self.now_ms(), run.job.run_at_ms or 0)
        self.jobs[run.job.id] = ModelJob(schedule, due_ms, held=held)
        return run.job.id

    def _goes_on(self, known: ModelSchedule) -> bool:
        job = None if known.active is None else self.jobs.get(known.active)
        return job is not None and not job.is_over

    # ── what happens to jobs ─────────────────────────────────────────────────────────────────

    def settle(self, job_id: str, state: JobState, delay_ms: int) -> None:
        """Write the end of a running job, or that it waits again."""
        job = self.jobs[job_id]
        if job.cancelling and state is not JobState.SUCCEEDED:
            state = JobState.CANCELLED
        job.cancelling = False
        if state in TERMINAL:
            self._end(job_id, state)
        else:
            job.state, job.due_ms = state, self.now_ms() + delay_ms

    def cancel(self, job_id: str) -> None:
        job = self.jobs[job_id]
        if job.state is JobState.RUNNING:
            job.cancelling = True
        elif not job.is_over:
            self._end(job_id, JobState.CANCELLED)

    def replay(self, job_id: str) -> None:
        job = self.jobs[job_id]
        if not job.is_over:
            return
        job.state, job.held, job.due_ms = JobState.WAITING, False, self.now_ms()
        for run in self.schedules[job.schedule].runs.values():
            if run.job_id == job_id:
                run.state, run.finished_at_ms = RunState.STARTED, None

    def purge(self, job_id: str) -> None:
        if self.jobs[job_id].is_over:
            del self.jobs[job_id]

    def _end(self, job_id: str, state: JobState) -> None:
        job = self.jobs[job_id]
        job.state = state
        known = self.schedules[job.schedule]
        for run in known.runs.values():
            if run.job_id == job_id:
                run.state, run.finished_at_ms = RunState(state.value), self.now_ms()
                if state is JobState.SUCCEEDED:
                    known.failures = 0
                elif state is JobState.DEAD:
                    known.failures += 1
                if state is not JobState.SUCCEEDED or known.queued() or known.backfill:
                    self.woken.add(job.schedule)

    def run_of(self, job_id: str) -> ModelRun | None:
        """Return the run that names a job."""
        runs = self.schedules[self.jobs[job_id].schedule].runs.values()
        return next((run for run in runs if run.job_id == job_id), None)

    # ── operators ────────────────────────────────────────────────────────────────────────────

    def hold(self, schedule: str) -> None:
        known = self.schedules[schedule]
        known.version += not known.held
        known.held = True

    def unhold(self, schedule: str) -> None:
        known = self.schedules[schedule]
        if known.held:
            known.version, known.failures, known.held = known.version + 1, 0, False
            self.woken.add(schedule)
