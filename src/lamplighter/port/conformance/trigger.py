"""Trigger: a run of a schedule now, on top of its calendar."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import claim_one, completed, handed_out, record
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    NIGHTLY,
    OTHERS,
    at,
    dead,
    due_ids,
    end,
    fire,
    known,
    new_schedule,
    put,
    run_at,
    runs_of,
    wanted_run,
)
from lamplighter.port.schedules import (
    Overlap,
    RunKind,
    RunRecord,
    RunState,
    ScheduleAnswer,
    Triggered,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.model.job import Claim
    from lamplighter.model.lifecycle import Settlement
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, UNKNOWN = ScheduleAnswer.DONE, ScheduleAnswer.UNKNOWN


async def test_a_triggered_schedule_makes_a_run_now(engine: Engine, clock: VirtualClock) -> None:
    await put(engine, new_schedule())
    clock.advance(seconds=5, ms=1)
    wanted = wanted_run()

    said = await engine.schedules.trigger(NIGHTLY, wanted, **BY)

    assert said == Triggered(NIGHTLY, DONE, wanted.job.id, RunState.STARTED)
    assert await runs_of(engine) == [
        RunRecord(
            schedule=NIGHTLY,
            due_ms=clock.now_ms(),
            kind=RunKind.TRIGGER,
            state=RunState.STARTED,
            at_ms=clock.now_ms(),
            job_id=wanted.job.id,
        )
    ]
    taken = await claim_one(engine)
    assert (taken.job.id, taken.job.schedule) == (wanted.job.id, NIGHTLY)


async def test_a_trigger_leaves_cursor_due_time_and_count_of_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    before = await known(engine)
    clock.advance(seconds=5)

    await engine.schedules.trigger(NIGHTLY, wanted_run(), **BY)

    after = await known(engine)
    assert (after.cursor_ms, after.due_ms, after.fired) == (before.cursor_ms, before.due_ms, 0)
    assert after.version == before.version
    assert await due_ids(engine) == []
    clock.advance(ms=MINUTE)
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_plan_made_before_a_trigger_of_its_schedule_still_counts(engine: Engine) -> None:
    await put(engine, new_schedule())
    await engine.schedules.trigger(NIGHTLY, wanted_run(), **BY)

    said = await fire(engine, run_at(at(1)))

    assert len(said.started) == 1


async def test_a_trigger_takes_the_next_millisecond_in_which_its_schedule_has_no_run(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    now = clock.now_ms()
    await fire(engine, run_at(now), run_at(now + 1), run_at(now + 3))

    for _ in range(2):
        await engine.schedules.trigger(NIGHTLY, wanted_run(), **BY)

    found = [(run.due_ms - now, run.kind) for run in await runs_of(engine)]
    assert found == [
        (0, RunKind.DUE),
        (1, RunKind.DUE),
        (2, RunKind.TRIGGER),
        (3, RunKind.DUE),
        (4, RunKind.TRIGGER),
    ]


async def test_a_trigger_leaves_whole_seconds_to_the_occurrences_of_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    clock.advance(ms=999)

    for _ in range(3):
        await engine.schedules.trigger(NIGHTLY, wanted_run(), **BY)

    assert [run.due_ms - at(0) for run in await runs_of(engine)] == [999, 1_001, 1_002]


@pytest.mark.parametrize("part_ms", [0, 123])
async def test_an_occurrence_of_a_schedule_runs_beside_a_trigger_in_its_very_millisecond(
    engine: Engine, clock: VirtualClock, part_ms: int
) -> None:
    due = at(1) + part_ms
    await put(engine, new_schedule(due_ms=due))
    clock.set(due)
    wanted = wanted_run()
    await engine.schedules.trigger(NIGHTLY, wanted, **BY)

    said = await fire(engine, run_at(due))

    assert said.started == (run_at(due).job.id,)
    assert [(run.due_ms, run.kind, run.job_id) for run in await runs_of(engine)] == [
        (due, RunKind.DUE, run_at(due).job.id),
        (due + 1, RunKind.TRIGGER, wanted.job.id),
    ]
    assert len(await handed_out(engine, 9)) == 2


async def test_a_held_schedule_is_triggered_too(engine: Engine) -> None:
    await put(engine, new_schedule())
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    wanted = wanted_run()

    said = await engine.schedules.trigger(NIGHTLY, wanted, **BY)

    assert (said.answer, said.state) == (DONE, RunState.STARTED)
    assert await handed_out(engine, 9) == [wanted.job.id]
    assert (await known(engine)).hold is not None


@pytest.mark.parametrize("over", [False, True])
async def test_a_trigger_of_a_schedule_repeated_with_the_same_job_is_answered_the_same(
    engine: Engine, clock: VirtualClock, *, over: bool
) -> None:
    await put(engine, new_schedule())
    wanted = wanted_run(Overlap.SKIP)
    first = await engine.schedules.trigger(NIGHTLY, wanted, **BY)
    if over:
        await end(engine)
    runs, before = await runs_of(engine), await known(engine)
    clock.advance(seconds=5)

    again = await engine.schedules.trigger(NIGHTLY, wanted, **BY)

    assert replace(again, state=first.state) == first
    assert over or again == first
    assert await runs_of(engine) == runs
    assert await known(engine) == before
    assert await handed_out(engine, 9) == ([] if over else [wanted.job.id])


async def test_a_trigger_of_a_schedule_repeated_after_its_job_was_removed_makes_no_second_one(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    wanted = wanted_run()
    await engine.schedules.trigger(NIGHTLY, wanted, **BY)
    await engine.jobs.purge([await end(engine)], **BY)
    runs = await runs_of(engine)

    again = await engine.schedules.trigger(NIGHTLY, wanted, **BY)

    assert (again.answer, again.job_id) == (DONE, wanted.job.id)
    assert await runs_of(engine) == runs
    assert await engine.inspector.job(wanted.job.id) is None


async def test_a_trigger_of_a_schedule_that_was_queued_is_answered_the_same_when_repeated(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await engine.schedules.trigger(NIGHTLY, wanted_run(Overlap.QUEUE_ONE), **BY)
    wanted = wanted_run(Overlap.QUEUE_ONE)
    first = await engine.schedules.trigger(NIGHTLY, wanted, **BY)
    assert first == Triggered(NIGHTLY, DONE, wanted.job.id, RunState.QUEUED)
    clock.advance(seconds=5)

    assert await engine.schedules.trigger(NIGHTLY, wanted, **BY) == first

    assert len(await runs_of(engine)) == 2


async def test_a_trigger_of_a_schedule_that_was_skipped_is_skipped_once_when_repeated(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await engine.schedules.trigger(NIGHTLY, wanted_run(Overlap.SKIP), **BY)
    wanted = wanted_run(Overlap.SKIP)
    first = await engine.schedules.trigger(NIGHTLY, wanted, **BY)
    assert first == Triggered(NIGHTLY, DONE, None, RunState.SKIPPED)
    runs, before = await runs_of(engine), await known(engine)
    clock.advance(seconds=5)

    assert await engine.schedules.trigger(NIGHTLY, wanted, **BY) == first

    assert await runs_of(engine) == runs
    assert await known(engine) == before
    assert await engine.inspector.job(wanted.job.id) is None


async def test_the_end_of_a_triggered_job_is_noted_at_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await engine.schedules.trigger(NIGHTLY, wanted_run(), **BY)
    clock.advance(seconds=3)

    job_id = await end(engine, dead)

    (run,) = await runs_of(engine)
    assert (run.job_id, run.state) == (job_id, RunState.DEAD)
    assert run.finished_at_ms == clock.now_ms()
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_trigger_of_an_unknown_schedule_makes_no_job(engine: Engine) -> None:
    wanted = wanted_run(schedule="nobody")

    assert await engine.schedules.trigger("nobody", wanted, **BY) == Triggered("nobody", UNKNOWN)

    assert await engine.inspector.job(wanted.job.id) is None
    assert await runs_of(engine, "nobody") == []


@pytest.mark.parametrize("other", OTHERS)
async def test_a_tenant_triggers_its_own_schedules_alone(engine: Engine, other: str) -> None:
    await put(engine, new_schedule(tenant="acme"))
    wanted = wanted_run(tenant="acme")
    before = await known(engine, tenant="acme")
    foreign = wanted_run(tenant=other)

    said = await engine.schedules.trigger(NIGHTLY, foreign, **BY, tenant=other)

    assert said == Triggered(NIGHTLY, UNKNOWN)
    assert await engine.inspector.job(foreign.job.id) is None
    assert await known(engine, tenant="acme") == before
    assert await runs_of(engine, tenant="acme") == []
    said = await engine.schedules.trigger(NIGHTLY, wanted, **BY, tenant="acme")
    assert said == Triggered(NIGHTLY, DONE, wanted.job.id, RunState.STARTED)


@pytest.mark.parametrize("note", ["r" * 1_001, "two\nlines", "a\x00b"])
async def test_a_trigger_of_a_schedule_with_a_note_that_cannot_be_shown_is_refused(
    engine: Engine, note: str
) -> None:
    await put(engine, new_schedule())

    with pytest.raises(InvalidInput):
        await engine.schedules.trigger(NIGHTLY, wanted_run(), by=note, reason="")
    with pytest.raises(InvalidInput):
        await engine.schedules.trigger(NIGHTLY, wanted_run(), by="alice", reason=note)

    assert await runs_of(engine) == []


async def test_a_job_triggered_by_a_schedule_that_cancels_takes_the_place_of_the_running_one(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), Overlap.SKIP, run_at_ms=at(0)))
    taken = await claim_one(engine)

    said = await engine.schedules.trigger(NIGHTLY, wanted_run(Overlap.CANCEL_RUNNING), **BY)

    assert said.state is RunState.QUEUED
    found = await record(engine, taken.job.id)
    assert (found.state, found.cancel is None) == (JobState.RUNNING, False)


@pytest.mark.parametrize("outcome", [completed, dead])
async def test_the_same_again_after_its_run_is_forgotten_makes_no_second_job_nor_many_runs(
    engine: Engine, clock: VirtualClock, outcome: Callable[[Claim], Settlement]
) -> None:
    await put(engine, new_schedule())
    run = wanted_run()
    first = await engine.schedules.trigger(NIGHTLY, run, **BY)
    clock.advance(seconds=1)
    await end(engine, outcome)
    clock.advance(seconds=1)
    await fire(engine, keep=(0, 0))
    assert await runs_of(engine) == []

    for _ in range(3):
        clock.advance(seconds=1)
        again = await engine.schedules.trigger(NIGHTLY, run, **BY)
        assert (again.job_id, again.state) == (first.job_id, RunState.STARTED)

    assert len(await runs_of(engine)) <= 1
    counts = await engine.inspector.counts()
    assert (counts["waiting"], sum(counts.values())) == (0, 1)
