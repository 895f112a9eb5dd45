"""Races of schedules: any number of coordinators, and of their plans one is written."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import claim, completed, record
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    at,
    dead,
    due_ids,
    fire,
    known,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
    states_of,
    wanted_run,
)
from lamplighter.port.schedules import (
    FireAnswer,
    Overlap,
    PutAnswer,
    RunState,
    ScheduleAnswer,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.model.job import Claim
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.schedules import Firing
    from lamplighter.port.store import Engine

    Factory = Callable[[], Awaitable[Engine]]

DONE, STALE = FireAnswer.DONE, FireAnswer.STALE
MANY = 24


async def _plans(engine: Engine, overlap: Overlap = Overlap.ALLOW) -> list[Firing]:
    """Plans with two runs each, for as many schedules that are put for them."""
    names = await put(engine, *(new_schedule(f"s{n}") for n in range(MANY)))
    return [
        plan_of(
            await known(engine, name),
            *(run_at(at(n), overlap, schedule=name, run_at_ms=at(0)) for n in (1, 2)),
            due_ms=at(3),
        )
        for name in names
    ]


async def _drained(engine: Engine) -> list[str]:
    """Claim until nothing is left."""
    taken: list[str] = []
    while batch := await claim(engine, 50):
        taken += [one.job.id for one in batch]
    return taken


async def test_of_two_coordinators_with_the_same_plan_of_a_schedule_one_is_stale(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    plans = await _plans(engine)

    said = await asyncio.gather(
        *(one.schedules.fire([plan]) for plan in plans for one in (engine, other))
    )

    for mine, theirs in zip(said[::2], said[1::2], strict=True):
        assert {mine[0].answer, theirs[0].answer} == {DONE, STALE}
        assert len(mine[0].started) + len(theirs[0].started) == 2
    for plan in plans:
        told = await known(engine, plan.id)
        assert (told.fired, told.cursor_ms) == (2, plan.next_cursor_ms)
        assert await states_of(engine, plan.id) == [RunState.STARTED] * 2
    expected = sorted(run.job.id for plan in plans for run in plan.runs)
    assert sorted(await _drained(engine)) == expected


async def test_of_batches_of_plans_for_schedules_at_once_each_plan_is_written_once(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    plans = await _plans(engine)

    # In another order each time: nobody may wait for another in a circle.
    said = await asyncio.gather(
        *(engines[n % 2].schedules.fire(plans if n % 4 < 2 else plans[::-1]) for n in range(8))
    )

    done = Counter(one.id for part in said for one in part if one.answer is DONE)
    assert done == {plan.id: 1 for plan in plans}
    assert len(await _drained(engine)) == 2 * MANY


async def test_schedules_are_handed_out_to_one_of_many_coordinators(
    engine: Engine, engine_factory: Factory, clock: VirtualClock
) -> None:
    engines = [engine, await engine_factory()]
    names = await put(engine, *(new_schedule(f"s{n}") for n in range(100)))
    clock.advance(ms=MINUTE)

    async def take(number: int) -> list[str]:
        taken: list[str] = []
        while batch := await due_ids(engines[number % 2], 7):
            taken += batch
        return taken

    taken = [one for part in await asyncio.gather(*map(take, range(8))) for one in part]

    assert sorted(taken) == sorted(names)


async def test_a_plan_and_a_hold_of_a_schedule_at_once_agree_on_who_was_first(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    plans = await _plans(engine)

    said = await asyncio.gather(
        *(
            work
            for plan in plans
            for work in (
                engine.schedules.fire([plan]),
                other.schedules.hold_schedules([plan.id], **BY),
            )
        )
    )

    for plan, fired in zip(plans, said[::2], strict=True):
        told = await known(engine, plan.id)
        assert (told.version, told.hold is None) == (2, False)
        written = fired[0].answer is DONE
        assert len(await runs_of(engine, plan.id)) == told.fired == (2 if written else 0)
        assert told.cursor_ms == (plan.next_cursor_ms if written else plan.cursor_ms)
    expected = 2 * sum(part[0].answer is DONE for part in said[::2])
    assert len(await _drained(engine)) == expected


async def test_a_plan_and_a_put_of_a_schedule_at_once_agree_on_who_was_first(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    plans = await _plans(engine)

    fires, puts = await asyncio.gather(
        asyncio.gather(*(engine.schedules.fire([plan]) for plan in plans)),
        asyncio.gather(
            *(
                other.schedules.put_schedules([new_schedule(plan.id, spec="other")], by="bob")
                for plan in plans
            )
        ),
    )

    assert {one.answer for part in puts for one in part} == {PutAnswer.CHANGED}
    for plan, fired in zip(plans, fires, strict=True):
        told = await known(engine, plan.id)
        written = fired[0].answer is DONE
        assert (told.version, told.spec) == (2, "other")
        assert len(await runs_of(engine, plan.id)) == (2 if written else 0)


async def test_a_plan_and_a_deletion_of_a_schedule_at_once_leave_no_queued_job(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    plans = await _plans(engine, Overlap.QUEUE_ALL)

    fires, _ = await asyncio.gather(
        asyncio.gather(*(engine.schedules.fire([plan]) for plan in plans)),
        asyncio.gather(*(other.schedules.delete_schedules([plan.id], **BY) for plan in plans)),
    )

    for plan, fired in zip(plans, fires, strict=True):
        assert await engine.schedules.schedule(plan.id) is None
        assert await runs_of(engine, plan.id) == []
        started, queued = [await engine.inspector.job(run.job.id) for run in plan.runs]
        if fired[0].answer is STALE:
            assert (started, queued) == (None, None)
        else:
            assert started is not None
            assert queued is not None
            assert (started.state, queued.state) == (JobState.WAITING, JobState.CANCELLED)


async def test_a_schedule_put_by_many_at_once_is_created_once(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]

    said = await asyncio.gather(
        *(engines[n % 2].schedules.put_schedules([new_schedule()], by="bob") for n in range(20))
    )

    answers = Counter(one.answer for part in said for one in part)
    assert answers == {PutAnswer.CREATED: 1, PutAnswer.ALREADY: 19}
    assert (await known(engine)).version == 1


async def test_a_schedule_triggered_by_many_at_once_runs_each_of_their_jobs_once(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    await put(engine, new_schedule())
    wanted = [wanted_run() for _ in range(6)]

    said = await asyncio.gather(
        *(
            one.schedules.trigger("nightly", run, **BY)
            for run in wanted
            for one in (*engines, *engines)
        )
    )

    assert {(one.answer, one.state) for one in said} == {(ScheduleAnswer.DONE, RunState.STARTED)}
    found = await runs_of(engine)
    assert sorted(str(run.job_id) for run in found) == sorted(run.job.id for run in wanted)
    assert len({run.due_ms for run in found}) == 6
    assert sorted(await _drained(engine)) == sorted(run.job.id for run in wanted)


async def test_a_plan_and_the_end_of_the_active_job_of_a_schedule_at_once_lose_no_queued_run(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    plans = await _plans(engine, Overlap.QUEUE_ONE)
    await engine.schedules.fire(plans)
    claims: list[Claim] = []
    while batch := await claim(engine, 50):
        claims += batch
    assert len(claims) == MANY
    empty = [plan_of(await known(engine, plan.id), due_ms=None) for plan in plans]

    await asyncio.gather(
        *(other.jobs.settle([completed(one)]) for one in claims),
        *(engine.schedules.fire([plan]) for plan in empty),
    )

    # Either the plan saw the end and started the next run, or the end made the schedule due.
    due: list[str] = []
    while found := await due_ids(engine):
        due += found
    for plan in plans:
        states = await states_of(engine, plan.id)
        if states != [RunState.SUCCEEDED, RunState.STARTED]:
            assert states == [RunState.SUCCEEDED, RunState.QUEUED]
            assert plan.id in due
            await fire(engine, schedule=plan.id)
        assert (await record(engine, plan.runs[1].job.id)).hold is None
    assert len(await _drained(engine)) == MANY


async def test_ends_of_many_jobs_of_a_schedule_at_once_are_all_counted(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    await put(engine, new_schedule())
    runs = [run_at(at(n), run_at_ms=at(0)) for n in range(1, MANY + 1)]
    await fire(engine, *runs)
    claims = await claim(engine, MANY)

    await asyncio.gather(*(engines[n % 2].jobs.settle([dead(one)]) for n, one in enumerate(claims)))

    assert (await known(engine)).failures == MANY
    assert await states_of(engine) == [RunState.DEAD] * MANY
