"""Fire: what a plan notes about its occurrences, and what it makes of its schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    handed_out,
    record,
    settle_one,
)
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    NIGHTLY,
    at,
    backfill_of,
    dead,
    due_ids,
    end,
    fire,
    known,
    neighbours,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
    skip_of,
    states_of,
)
from lamplighter.port.schedules import (
    FireAnswer,
    Fired,
    Overlap,
    RunKind,
    RunRecord,
    RunState,
)

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine


# ── runs and skips ───────────────────────────────────────────────────────────────────────────


async def test_runs_and_skips_of_a_schedule_are_noted(engine: Engine, clock: VirtualClock) -> None:
    await put(engine, new_schedule())
    clock.advance(seconds=9)
    runs = [run_at(at(4), Overlap.SKIP), run_at(at(5), Overlap.SKIP)]

    await fire(engine, *runs, skips=[skip_of(at(1), at(2), "missed", 2), skip_of(at(3), at(3))])

    now = clock.now_ms()
    skipped = {
        "schedule": NIGHTLY,
        "kind": RunKind.DUE,
        "state": RunState.SKIPPED,
        "at_ms": now,
    }
    found = await runs_of(engine)
    assert [one.due_ms for one in found] == [at(n) for n in (2, 3, 4, 5)]
    assert (found[0].state, found[0].reason, found[0].at_ms) == (RunState.SKIPPED, "missed", now)
    assert (found[0].first_ms, found[0].count, found[0].job_id) == (at(1), 2, None)
    assert (found[1].reason, found[1].count) == ("missed", 1)
    assert found[2] == RunRecord(
        schedule=NIGHTLY,
        due_ms=at(4),
        kind=RunKind.DUE,
        state=RunState.STARTED,
        at_ms=now,
        job_id=runs[0].job.id,
    )
    assert (found[3].state, found[3].reason, found[3].count) == (RunState.SKIPPED, "overlap", 1)
    for one in (found[0], found[1], found[3]):
        assert {name: getattr(one, name) for name in skipped} == skipped


async def test_skips_of_a_schedule_that_are_too_many_to_count_count_as_one(engine: Engine) -> None:
    await put(engine, new_schedule())

    said = await fire(
        engine, skips=[skip_of(at(1), at(5), count=None), skip_of(at(6), at(9), "late", 4)]
    )

    assert (said.skipped, (await known(engine)).skipped) == (5, 5)
    many, few = await runs_of(engine)
    assert (many.first_ms, many.due_ms, many.count) == (at(1), at(5), None)
    assert (few.reason, few.count) == ("late", 4)


async def test_a_schedule_tells_the_occurrence_that_was_fired_or_skipped_last(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    first, second = run_at(at(1)), run_at(at(4))
    await fire(engine, first)
    told = await known(engine)
    assert (told.last_due_ms, told.last_job) == (at(1), first.job.id)

    await fire(engine, skips=[skip_of(at(2), at(3))])
    told = await known(engine)
    assert (told.last_due_ms, told.last_job) == (at(3), first.job.id)

    await fire(engine, second)
    told = await known(engine)
    assert (told.last_due_ms, told.last_job) == (at(4), second.job.id)


async def test_an_occurrence_of_a_schedule_that_has_a_run_gets_no_second_one(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)), run_at(at(2)))
    runs = await runs_of(engine)
    again = run_at(at(1), id=run_at(at(77)).job.id)

    said = await fire(engine, again, run_at(at(3)))

    assert said.started == (run_at(at(3)).job.id,)
    assert await engine.inspector.job(again.job.id) is None
    assert (await runs_of(engine))[:2] == runs
    assert (await known(engine)).fired == 3


async def test_skips_that_an_earlier_run_or_skip_of_the_schedule_covers_are_not_noted_again(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1)), skips=[skip_of(at(2), at(5), "missed", 4)])
    runs = await runs_of(engine)

    said = await fire(
        engine,
        skips=[
            skip_of(at(1), at(1), "late"),
            skip_of(at(2), at(5), "late", 4),
            skip_of(at(3), at(4), "late", 2),
        ],
    )

    assert said.skipped == 0
    assert (await known(engine)).skipped == 4
    assert await runs_of(engine) == runs


async def test_a_schedule_counts_as_fired_only_runs_that_were_due_and_got_a_job(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())

    await fire(
        engine,
        run_at(at(-1), kind=RunKind.BACKFILL),
        run_at(at(1), Overlap.QUEUE_ONE),
        run_at(at(2), Overlap.QUEUE_ONE),
        run_at(at(3), Overlap.QUEUE_ONE),
        run_at(at(4), Overlap.ALLOW),
    )

    told = await known(engine)
    assert (told.fired, told.skipped) == (3, 1)


async def test_runs_of_a_schedule_that_have_ended_beyond_what_is_kept_are_removed(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    for number in range(1, 6):
        await fire(engine, run_at(at(number), run_at_ms=at(0)))
        await end(engine)
    for number in range(6, 11):
        await fire(engine, run_at(at(number), run_at_ms=at(0)))
        await end(engine, dead)
    await fire(engine, skips=[skip_of(at(n), at(n)) for n in (11, 12)])
    await fire(engine, run_at(at(13)), run_at(at(14), Overlap.SKIP))

    for _ in range(20):
        await fire(engine, keep=(2, 3))

    found = [(run.due_ms, run.state) for run in await runs_of(engine)]
    assert found == [
        (at(4), RunState.SUCCEEDED),
        (at(5), RunState.SUCCEEDED),
        (at(10), RunState.DEAD),
        (at(11), RunState.SKIPPED),
        (at(12), RunState.SKIPPED),
        (at(13), RunState.STARTED),
        (at(14), RunState.STARTED),
    ]
    told = await known(engine)
    assert (told.fired, told.skipped, told.failures) == (12, 2, 5)


async def test_runs_of_a_schedule_that_have_not_ended_are_all_kept(engine: Engine) -> None:
    await put(engine, new_schedule())
    runs = [run_at(at(n), Overlap.QUEUE_ALL) for n in range(1, 30)]
    await fire(engine, *runs, keep=(1, 1))

    for _ in range(10):
        await fire(engine, keep=(0, 0))

    assert await states_of(engine) == [RunState.STARTED] + [RunState.QUEUED] * 28


async def test_the_jobs_of_runs_that_a_schedule_no_longer_keeps_stay(engine: Engine) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)))
    job_id = await end(engine)

    for _ in range(5):
        await fire(engine, keep=(0, 0))

    assert await runs_of(engine) == []
    assert (await record(engine, job_id)).state is JobState.SUCCEEDED


# ── hold, backfill, due time ─────────────────────────────────────────────────────────────────


async def test_a_plan_may_hold_its_schedule(engine: Engine, clock: VirtualClock) -> None:
    await put(engine, new_schedule())
    clock.advance(ms=MINUTE)

    said = await fire(engine, run_at(at(1)), due_ms=at(0), hold="5 runs in a row have died")

    assert len(said.started) == 1
    told = await known(engine)
    assert told.hold is not None
    assert (told.hold.reason, told.hold.at_ms) == ("5 runs in a row have died", clock.now_ms())
    assert await due_ids(engine) == []
    await engine.schedules.unhold_schedules([NIGHTLY], **BY)
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_plan_made_before_another_held_its_schedule_is_stale(engine: Engine) -> None:
    await put(engine, new_schedule())
    older = plan_of(await known(engine), run_at(at(1)))
    await fire(engine, hold="5 runs in a row have died")

    assert await engine.schedules.fire([older]) == [Fired(NIGHTLY, FireAnswer.STALE)]

    assert await runs_of(engine) == []


async def test_a_plan_without_a_hold_leaves_its_schedule_free(engine: Engine) -> None:
    await put(engine, new_schedule())

    await fire(engine, due_ms=at(0))

    assert (await known(engine)).hold is None
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_plan_says_where_the_backfill_of_its_schedule_stands(engine: Engine) -> None:
    await put(engine, new_schedule())
    begun = backfill_of(at(-9), at(-1))
    await engine.schedules.backfill(NIGHTLY, begun, **BY)
    further = replace(begun, cursor_ms=at(-7), made=2)

    await fire(engine, run_at(at(-8), kind=RunKind.BACKFILL), backfill=further)
    assert (await known(engine)).backfill == replace(further, made=3)

    await fire(engine, backfill=None)
    assert (await known(engine)).backfill is None


async def test_a_schedule_that_is_fired_is_due_again_at_once_when_its_plan_says_so(
    engine: Engine, clock: VirtualClock
) -> None:
    one, two = neighbours(engine, 2)
    await put(engine, new_schedule(one, due_ms=at(0)), new_schedule(two, due_ms=at(0)))
    assert await due_ids(engine) == [one, two]

    await fire(engine, schedule=one, due_ms=clock.now_ms())
    await fire(engine, schedule=two, due_ms=None)

    assert await due_ids(engine) == [one]
    assert (await known(engine, two)).due_ms is None


async def test_a_settled_job_and_a_plan_of_its_schedule_after_each_other_lose_nothing(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    runs = [run_at(at(n), Overlap.QUEUE_ONE, run_at_ms=at(0)) for n in (1, 2)]
    await fire(engine, *runs)
    (taken,) = await claim(engine)
    assert await due_ids(engine) == []
    await fire(engine)

    await settle_one(engine, completed(taken))

    assert await due_ids(engine) == [NIGHTLY]
    assert (await fire(engine)).started == (runs[1].job.id,)
    assert await handed_out(engine, 9) == [runs[1].job.id]
