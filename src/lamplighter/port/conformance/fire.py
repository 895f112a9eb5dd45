"""Fire: a plan is written wholly or not at all, and once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.filters import Filter
from lamplighter.model.job import Level, Status
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    handed_out,
    new_job,
    record,
    records,
    submit,
)
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    NIGHTLY,
    at,
    end,
    fire,
    known,
    look,
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
    RunRecord,
    RunState,
)
from lamplighter.port.values import SubmitAnswer, Submitted

if TYPE_CHECKING:
    from lamplighter.model.job import JobRecord
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.schedules import Firing, ScheduleRecord
    from lamplighter.port.store import Engine

DONE, STALE = FireAnswer.DONE, FireAnswer.STALE
Everything = tuple["ScheduleRecord | None", list[RunRecord], list["JobRecord"]]


async def _everything(engine: Engine, schedule: str = NIGHTLY) -> Everything:
    """All that a plan could have changed."""
    page = await engine.inspector.jobs(Filter(), limit=100)
    return await engine.schedules.schedule(schedule), await runs_of(engine, schedule), page.jobs


async def _planned(engine: Engine) -> Firing:
    """A plan with a bit of all, of a schedule that is put for it."""
    await put(engine, new_schedule(due_ms=at(0)))
    (found,) = (await look(engine)).schedules
    return plan_of(
        found.record,
        run_at(at(2), Overlap.QUEUE_ALL),
        run_at(at(3), Overlap.QUEUE_ALL),
        skips=[skip_of(at(0.5), at(1), count=2)],
        due_ms=at(4),
        zones="2025b",
    )


# ── the fence ────────────────────────────────────────────────────────────────────────────────


async def test_a_plan_sets_cursor_due_time_and_zones_of_its_schedule(
    engine: Engine, clock: VirtualClock
) -> None:
    plan = await _planned(engine)
    before = await known(engine)
    clock.advance(seconds=1)

    (said,) = await engine.schedules.fire([plan])

    first, second = (run.job.id for run in plan.runs)
    assert said == Fired(NIGHTLY, DONE, (first,), queued=1, skipped=2)
    assert await known(engine) == replace(
        before,
        cursor_ms=at(3),
        due_ms=at(4),
        zones="2025b",
        fired=2,
        skipped=2,
        last_due_ms=at(3),
        last_job=second,
    )


async def test_a_plan_for_a_schedule_fired_before_is_stale_and_changes_nothing(
    engine: Engine,
) -> None:
    plan = await _planned(engine)
    await fire(engine, run_at(at(1)), due_ms=at(2))
    before = await _everything(engine)

    assert await engine.schedules.fire([plan]) == [Fired(NIGHTLY, STALE)]

    assert await _everything(engine) == before


async def test_a_plan_for_a_schedule_put_meanwhile_is_stale_and_changes_nothing(
    engine: Engine,
) -> None:
    plan = await _planned(engine)
    await engine.schedules.put_schedules([new_schedule(spec="other")], by="alice")
    before = await _everything(engine)

    assert await engine.schedules.fire([plan]) == [Fired(NIGHTLY, STALE)]

    assert await _everything(engine) == before


@pytest.mark.parametrize("unheld", [False, True])
async def test_a_plan_for_a_schedule_held_meanwhile_is_stale_and_changes_nothing(
    engine: Engine, *, unheld: bool
) -> None:
    plan = await _planned(engine)
    await engine.schedules.hold_schedules([NIGHTLY], **BY)
    if unheld:
        await engine.schedules.unhold_schedules([NIGHTLY], **BY)
    before = await _everything(engine)

    assert await engine.schedules.fire([plan]) == [Fired(NIGHTLY, STALE)]

    assert await _everything(engine) == before


async def test_a_plan_for_a_schedule_that_is_gone_is_stale_and_changes_nothing(
    engine: Engine,
) -> None:
    plan = await _planned(engine)
    await engine.schedules.delete_schedules([NIGHTLY], **BY)

    other = replace(plan, id="never put", runs=(run_at(at(2), schedule="never put"),))

    said = await engine.schedules.fire([plan, other])

    assert said == [Fired(NIGHTLY, STALE), Fired("never put", STALE)]
    assert await _everything(engine) == (None, [], [])


async def test_a_plan_for_a_schedule_repeated_after_a_lost_reply_is_stale_and_all_is_there_once(
    engine: Engine,
) -> None:
    plan = await _planned(engine)
    await engine.schedules.fire([plan])
    before = await _everything(engine)

    assert await engine.schedules.fire([plan]) == [Fired(NIGHTLY, STALE)]

    assert await _everything(engine) == before
    assert [run.state for run in before[1]] == [
        RunState.SKIPPED,
        RunState.STARTED,
        RunState.QUEUED,
    ]
    assert len(before[2]) == 2


async def test_plans_for_schedules_are_each_judged_alone_and_answered_in_order(
    engine: Engine,
) -> None:
    one, two, three = await put(engine, *(new_schedule(name) for name in ("a", "b", "c")))
    good, other = [
        plan_of(await known(engine, name), run_at(at(1), schedule=name)) for name in (one, three)
    ]
    stale = plan_of(replace(await known(engine, two), version=7), run_at(at(1), schedule=two))

    said = await engine.schedules.fire([other, stale, good, other])

    assert said == [
        Fired(three, DONE, (other.runs[0].job.id,)),
        Fired(two, STALE),
        Fired(one, DONE, (good.runs[0].job.id,)),
        Fired(three, STALE),
    ]
    assert await states_of(engine, two) == []


async def test_firing_no_schedules_answers_nothing(engine: Engine) -> None:
    assert await engine.schedules.fire([]) == []


async def test_more_plans_for_schedules_than_a_batch_are_refused_and_none_is_written(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    before = await _everything(engine)
    plan = plan_of(await known(engine), run_at(at(1)))

    with pytest.raises(InvalidInput):
        await engine.schedules.fire([plan] * (engine.capabilities.max_batch + 1))

    assert await _everything(engine) == before


async def test_a_plan_for_a_schedule_with_more_than_a_hundred_runs_is_refused(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    before = await _everything(engine)
    plan = plan_of(await known(engine), *(run_at(at(n)) for n in range(1, 102)))

    with pytest.raises(InvalidInput):
        await engine.schedules.fire([plan])

    assert await _everything(engine) == before
    said = await fire(engine, *plan.runs[:100])
    assert len(said.started) == 100


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────


async def test_jobs_that_a_schedule_fired_are_handed_out_in_order_and_name_it(
    engine: Engine, clock: VirtualClock
) -> None:
    (before,) = await submit(engine, new_job(id=run_at(at(-1)).job.id))
    await put(engine, new_schedule())
    clock.advance(ms=9 * MINUTE)
    runs = [run_at(at(n)) for n in range(1, 8)]

    said = await fire(engine, *runs)

    (after,) = await submit(engine, new_job(id=run_at(at(-2)).job.id))
    ids = [run.job.id for run in runs]
    assert sorted(said.started) == sorted(ids)
    taken = await claim(engine, 20)
    assert [one.job.id for one in taken] == [before, *ids, after]
    assert [one.job.schedule for one in taken] == [None, *[NIGHTLY] * 7, None]


async def test_a_job_that_a_schedule_fired_is_as_submit_would_have_made_it(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    clock.advance(seconds=5)
    run = run_at(at(1), level=Level.HIGH)
    (twin,) = await submit(engine, replace(run.job, id=run_at(at(2)).job.id))

    await fire(engine, run)

    made, expected = await records(engine, [run.job.id, twin])
    assert made == replace(expected, job=replace(expected.job, id=run.job.id))
    assert (made.status, made.job.due_at_ms) == (Status.SCHEDULED, at(1))
    assert made.job.level is Level.HIGH


async def test_a_queued_job_of_a_schedule_is_as_submit_would_have_held_it(engine: Engine) -> None:
    await put(engine, new_schedule())
    runs = [run_at(at(n), Overlap.QUEUE_ALL, run_at_ms=at(0)) for n in (1, 2)]
    (twin,) = await submit(engine, replace(runs[1].job, id=run_at(at(3)).job.id, held=True))

    await fire(engine, *runs)

    made, expected = await records(engine, [runs[1].job.id, twin])
    # Only the reason is another one.
    twin_job = replace(expected.job, id=made.job.id)
    assert made == replace(expected, job=twin_job, hold=made.hold)
    assert made.hold is not None
    assert (made.status, made.hold.at_ms) == (Status.PAUSED, made.job.created_at_ms)
    assert await handed_out(engine, 9) == [runs[0].job.id]


async def test_the_id_of_a_job_that_a_schedule_fired_is_already_for_submit(engine: Engine) -> None:
    await put(engine, new_schedule())
    queued = run_at(at(2), Overlap.QUEUE_ALL)
    runs = (run_at(at(1), Overlap.QUEUE_ALL, run_at_ms=at(0)), queued)
    await fire(engine, *runs)
    await end(engine)
    before = await records(engine, [run.job.id for run in runs])

    said = await engine.jobs.submit([run.job for run in runs])

    assert said == [Submitted(run.job.id, SubmitAnswer.ALREADY) for run in runs]
    assert await records(engine, [run.job.id for run in runs]) == before


@pytest.mark.parametrize("over", [False, True])
async def test_a_job_whose_id_exists_is_not_made_again_by_its_schedule(
    engine: Engine, *, over: bool
) -> None:
    run = run_at(at(1), run_at_ms=at(0))
    await submit(engine, run.job)
    if over:
        await end(engine)
    await put(engine, new_schedule())
    before = await record(engine, run.job.id)

    await fire(engine, run)

    assert await record(engine, run.job.id) == before
    assert (await engine.inspector.jobs(Filter(), limit=9)).jobs == [before]
    assert await handed_out(engine, 9) == ([] if over else [run.job.id])


async def test_a_schedule_makes_jobs_wherever_it_is(engine: Engine, clock: VirtualClock) -> None:
    names = await put(engine, *(new_schedule(f"s{n}") for n in range(40)))
    clock.advance(ms=MINUTE)
    plans = [plan_of(await known(engine, one), run_at(at(1), schedule=one)) for one in names]

    said = await engine.schedules.fire(plans)

    assert said == [Fired(one.id, DONE, (one.runs[0].job.id,)) for one in plans]
    taken: list[str] = []
    while batch := await claim(engine, 50):
        await engine.jobs.settle([completed(one) for one in batch])
        taken += [one.job.id for one in batch]
    assert sorted(taken) == sorted(one.runs[0].job.id for one in plans)
    for name in names:
        assert await states_of(engine, name) == [RunState.SUCCEEDED]
