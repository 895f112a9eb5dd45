"""Ends: what the end of a job does to the schedule that made it, in the same write."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.job import Delivery, JobState
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Rejected
from lamplighter.port.conformance.builders import (
    abandoned,
    answers,
    claim,
    claim_one,
    completed,
    failed,
    mark_start,
    new_job,
    record,
    released,
    settle_one,
    snoozed,
    submit,
)
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
    at,
    backfill_of,
    dead,
    due_ids,
    end,
    fire,
    known,
    look,
    new_schedule,
    put,
    run_at,
    runs_of,
    states_of,
    trigger_id,
)
from lamplighter.port.schedules import Overlap, RunKind, RunState
from lamplighter.port.values import ChangeAnswer, SettleAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.model.job import Claim
    from lamplighter.model.lifecycle import Settlement
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.schedules import Run, RunRecord, ScheduleRecord
    from lamplighter.port.store import Engine

STARTED, QUEUED, SUCCEEDED = RunState.STARTED, RunState.QUEUED, RunState.SUCCEEDED
DEAD, CANCELLED = RunState.DEAD, RunState.CANCELLED


def _run(number: int, overlap: Overlap = Overlap.ALLOW) -> Run:
    """A run whose job may be claimed at once."""
    return run_at(at(number), overlap, run_at_ms=at(0))


async def _fired(engine: Engine, *runs: Run) -> list[str]:
    """Put a schedule and fire it; gives the jobs, and nothing is due."""
    await put(engine, new_schedule())
    await fire(engine, *runs)
    assert await due_ids(engine) == []
    return [run.job.id for run in runs]


async def _seen(engine: Engine) -> tuple[ScheduleRecord, list[RunRecord]]:
    return await known(engine), await runs_of(engine)


# ── settle ───────────────────────────────────────────────────────────────────────────────────


async def test_a_success_ends_the_run_of_its_schedule(engine: Engine, clock: VirtualClock) -> None:
    await _fired(engine, _run(1))
    (before,) = await runs_of(engine)
    told = await known(engine)
    taken = await claim_one(engine)
    clock.advance(seconds=5)

    await settle_one(engine, completed(taken))

    (after,) = await runs_of(engine)
    assert after == replace(
        before,
        state=SUCCEEDED,
        started_at_ms=before.at_ms,
        finished_at_ms=clock.now_ms(),
    )
    assert await known(engine) == told
    assert await due_ids(engine) == []


async def test_a_success_makes_a_schedule_due_for_which_a_run_is_queued(engine: Engine) -> None:
    await _fired(engine, _run(1, Overlap.QUEUE_ONE), _run(2, Overlap.QUEUE_ONE))

    await end(engine)

    assert await due_ids(engine) == [NIGHTLY]


async def test_a_success_makes_a_schedule_due_that_is_backfilled(engine: Engine) -> None:
    await _fired(engine, _run(1))
    await fire(engine, backfill=backfill_of(at(-10), at(-5)), due_ms=at(60))
    assert await due_ids(engine) == []

    await end(engine)

    assert await due_ids(engine) == [NIGHTLY]


async def test_a_death_ends_the_run_of_its_schedule_and_is_counted(
    engine: Engine, clock: VirtualClock
) -> None:
    await _fired(engine, _run(1))
    told = await known(engine)
    clock.advance(seconds=5)

    await end(engine, dead)

    (after,) = await runs_of(engine)
    assert (after.state, after.finished_at_ms) == (DEAD, clock.now_ms())
    assert await known(engine) == replace(told, failures=1)
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_rejected_job_of_a_schedule_is_a_death(engine: Engine) -> None:
    await _fired(engine, _run(1))

    await end(engine, lambda taken: settle(taken, Rejected("never")))

    assert await states_of(engine) == [DEAD]
    assert (await known(engine)).failures == 1


async def test_the_failures_of_a_schedule_are_those_since_the_last_success(engine: Engine) -> None:
    await _fired(engine, *(_run(n) for n in range(1, 7)))
    counted: list[int] = []

    for how in (dead, dead, completed, dead, completed, dead):
        await end(engine, how)
        counted.append((await known(engine)).failures)

    assert counted == [1, 2, 0, 1, 0, 1]
    assert await states_of(engine) == [DEAD, DEAD, SUCCEEDED, DEAD, SUCCEEDED, DEAD]


async def test_ends_of_one_schedule_in_one_call_are_all_counted(engine: Engine) -> None:
    await _fired(engine, *(_run(n) for n in range(1, 6)))
    one, two, three, four, five = await claim(engine, 5)

    await engine.jobs.settle([dead(one), completed(two), dead(three), dead(four), dead(five)])

    assert (await known(engine)).failures == 3
    assert await states_of(engine) == [DEAD, SUCCEEDED, DEAD, DEAD, DEAD]


async def test_ends_of_many_schedules_in_one_call_reach_each_of_them(engine: Engine) -> None:
    names = await put(engine, *(new_schedule(f"s{n}") for n in range(12)))
    for name in names:
        await fire(engine, run_at(at(1), schedule=name, run_at_ms=at(0)), schedule=name)
    claims: list[Claim] = []
    while batch := await claim(engine, 12):
        claims += batch

    await engine.jobs.settle([(dead if n % 2 else completed)(one) for n, one in enumerate(claims)])

    for number, one in enumerate(claims):
        assert one.job.schedule is not None
        assert await states_of(engine, one.job.schedule) == [DEAD if number % 2 else SUCCEEDED]
        assert (await known(engine, one.job.schedule)).failures == number % 2
    found: list[str] = []
    while due := await due_ids(engine):
        found += due
    assert sorted(found) == sorted(str(one.job.schedule) for one in claims[1::2])


@pytest.mark.parametrize("how", [failed, released, partial(snoozed, seconds=60)])
async def test_a_job_that_comes_back_does_not_end_the_run_of_its_schedule(
    engine: Engine, how: Callable[[Claim], Settlement]
) -> None:
    await _fired(engine, _run(1))
    told = await known(engine)

    await end(engine, how)

    (after,) = await runs_of(engine)
    assert (after.state, after.finished_at_ms) == (STARTED, None)
    assert await known(engine) == told
    assert await due_ids(engine) == []


async def test_a_settlement_repeated_or_lost_is_counted_once_at_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await _fired(engine, _run(1))
    taken = await claim_one(engine)
    await settle_one(engine, dead(taken))
    before = await _seen(engine)
    await due_ids(engine)
    clock.advance(seconds=1)

    said = await engine.jobs.settle(
        [dead(taken), completed(replace(taken, fence=replace(taken.fence, nonce="f" * 16)))]
    )

    assert [one.answer for one in said] == [SettleAnswer.ALREADY, SettleAnswer.LOST]
    assert await _seen(engine) == before
    assert await due_ids(engine) == []


# ── rescue ───────────────────────────────────────────────────────────────────────────────────


async def test_a_job_whose_worker_vanished_for_good_is_a_death_at_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    run = _run(1)
    once = replace(run, job=replace(run.job, delivery=Delivery.AT_MOST_ONCE))
    await fire(engine, once)
    await mark_start(engine, await claim_one(engine))
    clock.advance(seconds=31)
    (expired,) = await engine.jobs.rescue(10)

    assert (await settle_one(engine, abandoned(expired.claim))).state is JobState.DEAD

    (after,) = await runs_of(engine)
    assert (after.state, after.finished_at_ms) == (DEAD, clock.now_ms())
    assert (await known(engine)).failures == 1
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_job_whose_worker_vanished_and_that_runs_again_goes_on_at_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await _fired(engine, _run(1))
    await claim_one(engine)
    clock.advance(seconds=31)
    (expired,) = await engine.jobs.rescue(10)

    assert (await settle_one(engine, abandoned(expired.claim))).state is JobState.WAITING

    assert await states_of(engine) == [STARTED]
    assert (await known(engine)).failures == 0
    assert await due_ids(engine) == []


# ── cancel ───────────────────────────────────────────────────────────────────────────────────


async def test_a_waiting_job_that_is_cancelled_ends_the_run_of_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    (first, _) = await _fired(engine, _run(1), _run(2))
    await end(engine, dead)
    await fire(engine)
    (_, second) = await runs_of(engine)
    assert second.job_id is not None
    clock.advance(seconds=5)

    await engine.jobs.cancel([second.job_id, first], **BY)

    (one, two) = await runs_of(engine)
    assert (one.state, two.state, two.finished_at_ms) == (DEAD, CANCELLED, clock.now_ms())
    assert (await known(engine)).failures == 1
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_running_job_that_is_cancelled_ends_the_run_of_its_schedule_when_it_is_settled(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await _fired(engine, _run(1))
    taken = await claim_one(engine)
    await engine.jobs.cancel([job_id], **BY)
    assert await states_of(engine) == [STARTED]
    assert await due_ids(engine) == []
    clock.advance(seconds=5)

    await settle_one(engine, released(taken))

    (run,) = await runs_of(engine)
    assert (run.state, run.finished_at_ms) == (CANCELLED, clock.now_ms())
    assert (await known(engine)).failures == 0
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_queued_job_that_is_cancelled_ends_its_run_and_wakes_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    (_, queued) = await _fired(engine, _run(1, Overlap.QUEUE_ONE), _run(2, Overlap.QUEUE_ONE))
    clock.advance(seconds=5)

    await engine.jobs.cancel([queued], **BY)

    (_, run) = await runs_of(engine)
    assert (run.state, run.finished_at_ms) == (CANCELLED, clock.now_ms())
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_cancelled_job_of_a_schedule_cancelled_again_changes_nothing(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await _fired(engine, _run(1))
    await engine.jobs.cancel([job_id], **BY)
    assert await due_ids(engine) == [NIGHTLY]
    await fire(engine)
    before = await _seen(engine)
    clock.advance(seconds=5)

    assert answers(await engine.jobs.cancel([job_id], **BY)) == [ChangeAnswer.ALREADY]

    assert await _seen(engine) == before
    assert await due_ids(engine) == []


# ── purge, replay, retry ─────────────────────────────────────────────────────────────────────


async def test_a_purged_job_leaves_the_end_of_its_run_at_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    await _fired(engine, _run(1))
    job_id = await end(engine, dead)
    told, (before,) = await _seen(engine)
    clock.advance(seconds=5)

    await engine.jobs.purge([job_id], **BY)

    assert await known(engine) == told
    assert await runs_of(engine) == [replace(before, started_at_ms=None)]


@pytest.mark.parametrize("verb", ["replay", "retry"])
async def test_a_dead_job_that_runs_again_makes_its_run_started_again_at_its_schedule(
    engine: Engine, clock: VirtualClock, verb: str
) -> None:
    await _fired(engine, _run(1))
    job_id = await end(engine, dead)
    clock.advance(seconds=5)

    await getattr(engine.jobs, verb)([job_id], **BY)

    (run,) = await runs_of(engine)
    assert (run.job_id, run.state, run.finished_at_ms) == (job_id, STARTED, None)
    assert (await known(engine)).failures == 1
    clock.advance(seconds=5)
    assert await end(engine) == job_id
    (run,) = await runs_of(engine)
    assert (run.state, run.finished_at_ms) == (SUCCEEDED, clock.now_ms())
    assert (await known(engine)).failures == 0


@pytest.mark.parametrize("state", [SUCCEEDED, CANCELLED])
async def test_a_job_of_a_schedule_is_replayed_whatever_its_end_was(
    engine: Engine, state: RunState
) -> None:
    (job_id,) = await _fired(engine, _run(1))
    if state is SUCCEEDED:
        await end(engine)
    else:
        await engine.jobs.cancel([job_id], **BY)
    assert await states_of(engine) == [state]

    await engine.jobs.replay([job_id], **BY)

    assert await states_of(engine) == [STARTED]
    await end(engine, dead)
    assert await states_of(engine) == [DEAD]


async def test_a_job_replayed_after_its_schedule_no_longer_keeps_its_run_changes_nothing(
    engine: Engine,
) -> None:
    await _fired(engine, _run(1))
    job_id = await end(engine)
    for _ in range(5):
        await fire(engine, keep=(0, 0))
    before = await _seen(engine)
    assert before[1] == []

    await engine.jobs.replay([job_id], **BY)
    await end(engine, dead)

    assert await _seen(engine) == before


# ── held, gone, not named ────────────────────────────────────────────────────────────────────


async def test_a_job_that_ends_while_its_schedule_is_held_is_noted_and_wakes_nobody(
    engine: Engine, clock: VirtualClock
) -> None:
    await _fired(engine, _run(1))
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    clock.advance(seconds=5)

    await end(engine, dead)

    (run,) = await runs_of(engine)
    assert (run.state, run.finished_at_ms) == (DEAD, clock.now_ms())
    assert (await known(engine)).failures == 1
    found = await look(engine)
    assert (found.schedules, found.poll_after_ms) == ([], None)


async def test_a_job_that_ends_while_its_schedule_is_handed_out_is_not_lost(
    engine: Engine,
) -> None:
    await put(engine, new_schedule(due_ms=at(0)))
    first, queued = _run(1, Overlap.QUEUE_ONE), _run(2, Overlap.QUEUE_ONE)
    await fire(engine, first, queued, due_ms=at(0))
    assert await due_ids(engine) == [NIGHTLY]

    await end(engine)

    said = await fire(engine, due_ms=at(60))
    assert said.started == (queued.job.id,)


async def test_jobs_of_a_schedule_that_is_gone_end_like_any_other(engine: Engine) -> None:
    ids = await _fired(engine, *(_run(n) for n in range(1, 5)))
    await engine.schedules.delete_schedules([NIGHTLY], **BY)

    one, two = await end(engine), await end(engine, dead)
    await engine.jobs.cancel([ids[2]], **BY)
    await engine.jobs.replay([two], **BY)
    await engine.jobs.purge([one], **BY)

    assert (await record(engine, ids[2])).state is JobState.CANCELLED
    assert (await record(engine, two)).state is JobState.WAITING
    assert await engine.schedules.schedule(NIGHTLY) is None
    assert await runs_of(engine) == []
    assert await due_ids(engine) == []


async def test_a_job_that_no_run_names_says_nothing_to_its_schedule(engine: Engine) -> None:
    await _fired(engine, run_at(at(1)))
    before = await _seen(engine)
    ids = [trigger_id() for _ in range(3)]
    await submit(engine, *(new_job(id=one, schedule=NIGHTLY) for one in ids))

    await end(engine)
    await end(engine, dead)
    await engine.jobs.cancel([ids[2]], **BY)
    await engine.jobs.replay(ids, **BY)

    assert await _seen(engine) == before
    assert await due_ids(engine) == []


async def test_a_job_of_a_schedule_that_was_never_put_ends_like_any_other(engine: Engine) -> None:
    await submit(engine, new_job(id=trigger_id("nobody"), schedule="nobody"))

    job_id = await end(engine, dead)

    assert (await record(engine, job_id)).state is JobState.DEAD
    assert await engine.schedules.schedule("nobody") is None
    assert await due_ids(engine) == []


async def test_the_end_of_a_backfilled_job_is_counted_like_any_other_of_its_schedule(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await engine.schedules.backfill(NIGHTLY, backfill_of(at(-9), at(-1), limit=1), **BY)
    await fire(engine, run_at(at(-8), kind=RunKind.BACKFILL))
    assert await due_ids(engine) == []

    await end(engine, dead)

    assert await states_of(engine) == [DEAD]
    assert (await known(engine)).failures == 1
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_queued_job_of_a_schedule_that_somebody_let_go_ends_its_run_too(
    engine: Engine,
) -> None:
    (_, queued) = await _fired(engine, _run(1, Overlap.QUEUE_ONE), _run(2, Overlap.QUEUE_ONE))
    await engine.jobs.unhold([queued], **BY)

    taken = await claim(engine, 2)
    await engine.jobs.settle([completed(one) for one in taken])

    assert await states_of(engine) == [SUCCEEDED, SUCCEEDED]
    assert (await fire(engine)).started == ()
