"""Random plans, triggers and ends of jobs, against an engine and against the reference."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lamplighter.model.filters import Filter
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed, Rejected, Released, Succeeded
from lamplighter.port.conformance.builders import BOOM, NO_JITTER, claim, settle_one
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    at,
    backfill_of,
    due_ids,
    known,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
    skip_of,
    wanted_run,
)
from lamplighter.port.conformance.schedule_reference import ModelSchedule, ScheduleReference
from lamplighter.port.conformance.state_machine import EXAMPLES, PARTS, SETTINGS
from lamplighter.port.schedules import Overlap, RunKind, RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from lamplighter.model.job import Claim, JobRecord
    from lamplighter.model.outcome import Outcome
    from lamplighter.port.schedules import Firing, Run
    from lamplighter.port.store import Engine

T = TypeVar("T")
NAMES = ("daily", "nightly")
STEPS = 25
FAR = 10_000
"""Minutes before the clock's start at which backfills begin."""
PAST = backfill_of(at(-FAR), at(0), limit=9)

names = st.sampled_from(NAMES)
policies = st.sampled_from(Overlap)
picks = st.integers(0, 20)
wanted = st.lists(st.tuples(policies, st.sampled_from([RunKind.DUE, RunKind.BACKFILL])), max_size=3)
ends: st.SearchStrategy[Outcome] = st.sampled_from(
    [Succeeded(), Succeeded(), Failed(BOOM), Rejected("never"), Released()]
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_any_sequence_of_plans_for_schedules_agrees_with_the_reference(
    fresh_engine: Callable[[Callable[[], int]], Engine], part: int
) -> None:
    class Bound(ScheduleMachine):
        def __init__(self) -> None:
            super().__init__(fresh_engine)

    examples = max(1, EXAMPLES // PARTS + (part < EXAMPLES % PARTS))
    run_state_machine_as_test(
        Bound, settings=settings(max_examples=examples, stateful_step_count=STEPS, **SETTINGS)
    )


class ScheduleMachine(RuleBasedStateMachine):
    """Two schedules in one store, their reference, and one clock."""

    def __init__(self, make: Callable[[Callable[[], int]], Engine]) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.runner = asyncio.Runner()
        self.engine = make(self.clock.now_ms)
        self.run(self.engine.open())
        self.reference = ScheduleReference(self.clock.now_ms)
        self.claims: list[Claim] = []
        self.plans: list[Firing] = []
        self.triggers: list[tuple[str, Run]] = []
        self.past: dict[str, int] = dict.fromkeys(NAMES, -FAR)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()

    @initialize()
    def begin(self) -> None:
        self.run(put(self.engine, *(new_schedule(name, due_ms=None) for name in NAMES)))
        for name in NAMES:
            self.reference.schedules[name] = ModelSchedule(self.clock.now_ms(), None)

    # ── plans and triggers ───────────────────────────────────────────────────────────────────

    @rule(name=names, wanted=wanted, skips=st.integers(0, 2), last=policies)
    def fire(
        self, name: str, wanted: list[tuple[Overlap, RunKind]], skips: int, last: Overlap
    ) -> None:
        plan = self._plan(name, wanted, skips, last)
        self.plans.append(plan)
        self._fire(plan)

    @rule(name=names, made=st.integers(0, 2), hold=st.sampled_from([None, None, "enough"]))
    def fire_without_a_new_cursor(self, name: str, made: int, hold: str | None) -> None:
        left = None if made == 0 else replace(PAST, cursor_ms=at(made - FAR), made=made)
        plan = replace(self._plan(name, [], 0, Overlap.ALLOW), backfill=left, hold=hold)
        self.plans.append(plan)
        self._fire(plan)

    @precondition(lambda self: self.plans)
    @rule(pick=picks)
    def fire_again(self, pick: int) -> None:
        self._fire(self.plans[-1 - pick % len(self.plans)])

    def _plan(
        self, name: str, wanted: list[tuple[Overlap, RunKind]], skips: int, last: Overlap
    ) -> Firing:
        """Occurrences after the cursor: first those that are skipped, then those with a job."""
        record = self.run(known(self.engine, name))
        runs: list[Run] = []
        due_ms = record.cursor_ms + skips * MINUTE
        skip = [skip_of(record.cursor_ms + MINUTE, due_ms, count=skips)] if skips else []
        for overlap, kind in [*wanted, (last, RunKind.DUE)]:
            if kind is RunKind.BACKFILL:
                self.past[name] += 1
                when = at(self.past[name])
            else:
                due_ms += MINUTE
                when = due_ms
            runs.append(run_at(when, overlap, schedule=name, kind=kind, run_at_ms=at(0)))
        runs.sort(key=lambda run: run.due_ms)
        return plan_of(record, *(runs if wanted else ()), skips=skip)

    def _fire(self, plan: Firing) -> None:
        (said,) = self.run(self.engine.schedules.fire([plan]))
        expected = self.reference.fire(plan)
        assert sorted(said.started) == sorted(expected.started)
        assert replace(said, started=()) == replace(expected, started=())

    @rule(name=names, overlap=policies)
    def trigger(self, name: str, overlap: Overlap) -> None:
        self.triggers.append((name, wanted_run(overlap, schedule=name)))
        self._trigger(*self.triggers[-1])

    @precondition(lambda self: self.triggers)
    @rule(pick=picks)
    def trigger_again(self, pick: int) -> None:
        self._trigger(*self.triggers[-1 - pick % len(self.triggers)])

    def _trigger(self, name: str, run: Run) -> None:
        expected = self.reference.trigger(name, run)
        said = self.run(self.engine.schedules.trigger(name, run, **BY))
        if run.job.id not in self.reference.jobs or expected.state is RunState.SKIPPED:
            # A run whose job was made and is gone, or was replaced: only its name is the same.
            assert (said.id, said.answer) == (expected.id, expected.answer)
        else:
            assert said == expected

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────

    @rule(limit=st.integers(1, 3))
    def take(self, limit: int) -> None:
        now = self.clock.now_ms()
        free = {
            job_id
            for job_id, job in self.reference.jobs.items()
            if job.state is JobState.WAITING and not job.held and job.due_ms <= now
        }
        taken = self.run(claim(self.engine, limit))
        assert {one.job.id for one in taken} <= free
        assert taken or not free
        for one in taken:
            self.reference.jobs[one.job.id].state = JobState.RUNNING
        self.claims += taken

    @precondition(lambda self: self.claims)
    @rule(pick=picks, outcome=ends)
    def end(self, pick: int, outcome: Outcome) -> None:
        taken = self.claims.pop(pick % len(self.claims))
        written = settle(taken, outcome, retry=NO_JITTER)
        self.run(settle_one(self.engine, written))
        self.reference.settle(taken.job.id, written.next.state, written.next.delay_ms)

    @precondition(lambda self: self.reference.jobs)
    @rule(pick=picks, verb=st.sampled_from(["cancel", "cancel", "replay", "purge"]))
    def change(self, pick: int, verb: str) -> None:
        ids = list(self.reference.jobs)
        job_id = ids[-1 - pick % len(ids)]
        run = self.reference.run_of(job_id)
        if verb == "replay" and run is not None and run.state is RunState.SKIPPED:
            return  # a job whose run was replaced: nothing is promised
        work = getattr(self.engine.jobs, verb)([job_id], **BY)
        self.run(work)
        getattr(self.reference, verb)(job_id)

    # ── operators and time ───────────────────────────────────────────────────────────────────

    @rule(name=names, verb=st.sampled_from(["hold", "unhold", "unhold"]))
    def change_schedule(self, name: str, verb: str) -> None:
        self.run(getattr(self.engine.schedules, f"{verb}_schedules")([name], **BY))
        getattr(self.reference, verb)(name)

    @rule()
    def look(self) -> None:
        woken = {n for n in self.reference.woken if not self.reference.schedules[n].held}
        assert set(self.run(due_ids(self.engine, lease_ms=1))) >= woken
        # The lease is over at once, so that whoever was due is due again until it is fired.
        self.clock.advance(ms=1)

    @rule(ms=st.sampled_from([1, 1_000, 10_000]))
    def time_passes(self, ms: int) -> None:
        self.clock.advance(ms=ms)

    # ── both agree ───────────────────────────────────────────────────────────────────────────

    @invariant()
    def every_schedule_is_as_the_reference_says(self) -> None:
        for name, model in self.reference.schedules.items():
            record = self.run(known(self.engine, name))
            found = (record.version, record.cursor_ms, record.hold is not None, record.backfill)
            assert found == (model.version, model.cursor_ms, model.held, model.backfill)
            counted = (record.fired, record.skipped, record.failures)
            assert counted == (model.fired, model.skipped, model.failures)

    @invariant()
    def every_run_is_as_the_reference_says(self) -> None:
        for name, model in self.reference.schedules.items():
            found = {run.due_ms: run for run in self.run(runs_of(self.engine, name))}
            assert set(found) == set(model.runs)
            for due_ms, expected in model.runs.items():
                run = found[due_ms]
                seen = (run.kind, run.state, run.reason, run.at_ms, run.count)
                assert seen == (
                    expected.kind,
                    expected.state,
                    expected.reason,
                    expected.at_ms,
                    expected.count,
                )
                if expected.state is not RunState.SKIPPED:
                    assert run.job_id == expected.job_id
                    assert run.finished_at_ms == expected.finished_at_ms

    @invariant()
    def every_job_is_as_the_reference_says(self) -> None:
        found = {one.job.id: one for one in self.run(self._every_job())}
        assert set(found) == set(self.reference.jobs)
        for job_id, expected in self.reference.jobs.items():
            one = found[job_id]
            assert (one.state, one.job.schedule) == (expected.state, expected.schedule)
            if not expected.is_over:
                assert (one.hold is not None) == expected.held
                assert (one.cancel is not None) == expected.cancelling

    async def _every_job(self) -> list[JobRecord]:
        records: list[JobRecord] = []
        cursor: str | None = None
        while True:
            page = await self.engine.inspector.jobs(Filter(), limit=100, cursor=cursor)
            records += page.jobs
            if (cursor := page.cursor) is None:
                return records
