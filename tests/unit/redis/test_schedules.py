"""Schedules in Redis: what is bounded, what is refused, and what other jobs pay for them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.model.errors import InvalidInput, InvalidName
from lamplighter.model.ids import moved, of_occurrence, shard_of_schedule
from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import claim, completed, key, new_job, submit
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
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
    Run,
    RunState,
    ScheduleAnswer,
    ScheduleFilter,
)
from tests.unit.redis.stores import Store, opened

MANY = 250
QUEUE_ALL, CANCEL_RUNNING = Overlap.QUEUE_ALL, Overlap.CANCEL_RUNNING


@pytest.fixture(params=[1, 4])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of one shard, and one of several."""
    async with opened(tmp_path, request.param) as store:
        yield store


@pytest.fixture
async def one_shard(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 1) as store:
        yield store


@pytest.fixture
async def four_shards(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 4) as store:
        yield store


def early(number: int, overlap: Overlap, schedule: str = NIGHTLY) -> Run:
    """A run whose job may be claimed at once."""
    return run_at(at(number), overlap, schedule=schedule, run_at_ms=at(0))


async def with_long_queue(store: Store) -> list[Run]:
    """A schedule with one job that runs and very many that wait for it."""
    await put(store.engine, new_schedule())
    runs = [early(n, QUEUE_ALL) for n in range(MANY + 1)]
    for start in range(0, len(runs), 100):
        await fire(store.engine, *runs[start : start + 100])
    assert len(await claim(store.engine, 10)) == 1
    return runs


def calls(store: Store, *names: str) -> int:
    """How often the server has run these commands, in scripts too."""
    run = store.client.info("commandstats")
    return sum(run.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in names)


def commands(store: Store) -> int:
    return sum(one["calls"] for one in store.client.info("commandstats").values())


# ── bounds ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["fire", "trigger"])
async def test_a_run_takes_the_place_of_more_queued_ones_than_a_script_may_cancel(
    store: Store, how: str
):
    engine = store.engine
    await with_long_queue(store)
    scripts = calls(store, "evalsha", "eval")

    if how == "fire":
        last = early(MANY + 1, CANCEL_RUNNING)
        said = await fire(engine, last)
        assert (said.started, said.queued) == ((), 1)
    else:
        last = wanted_run(CANCEL_RUNNING)
        assert (await engine.schedules.trigger(NIGHTLY, last, **BY)).state is RunState.QUEUED

    assert calls(store, "evalsha", "eval") - scripts >= 3
    found = await runs_of(engine)
    # Of those that have ended only some are kept.
    assert [one.job_id for one in found if one.state is RunState.QUEUED] == [last.job.id]
    assert {one.reason for one in found if one.state is RunState.SKIPPED} == {"replaced"}
    counts = await engine.inspector.counts()
    assert (counts["cancelled"], counts["waiting"], counts["running"]) == (MANY, 1, 1)
    assert (await known(engine)).skipped == MANY
    assert await store.faults() == ()


async def test_a_schedule_with_more_queued_jobs_than_a_script_may_cancel_is_deleted(store: Store):
    engine = store.engine
    runs = await with_long_queue(store)

    (said,) = await engine.schedules.delete_schedules([NIGHTLY], **BY)

    assert said.answer is ScheduleAnswer.DONE
    counts = await engine.inspector.counts()
    assert (counts["cancelled"], counts["waiting"], counts["running"]) == (MANY, 0, 1)
    assert (
        store.keys().keys() & {"schedule", "schedules", "schedule_names", "specs", "runs"} == set()
    )
    (taken,) = await engine.jobs.claims_of("worker-1")
    assert taken.job.id == runs[0].job.id
    await engine.jobs.settle([completed(taken)])
    assert store.keys().keys() & {"schedule", "schedules", "runs"} == set()
    assert await store.faults() == ()


async def test_plans_with_very_many_runs_are_written_in_several_scripts(one_shard: Store):
    engine = one_shard.engine
    names = await put(engine, *(new_schedule(f"s{n}") for n in range(5)))
    plans = [
        plan_of(await known(engine, name), *(early(n, Overlap.ALLOW, name) for n in range(1, 61)))
        for name in names
    ]
    before = calls(one_shard, "evalsha", "eval")

    said = await engine.schedules.fire(plans)

    assert [len(one.started) for one in said] == [60] * 5
    assert calls(one_shard, "evalsha", "eval") - before >= 5
    assert await one_shard.faults() == ()


async def test_looking_for_due_schedules_costs_the_same_however_many_are_at_rest(one_shard: Store):
    async def cost() -> int:
        before = commands(one_shard)
        assert await due_ids(one_shard.engine, 10, lease_ms=0) == [NIGHTLY]
        return commands(one_shard) - before

    await put(one_shard.engine, new_schedule(due_ms=at(0)))
    await cost()  # the script is known from now on
    alone = await cost()

    resting = [new_schedule(f"rest {n}", due_ms=at(60 + n) if n % 2 else None) for n in range(500)]
    await put(one_shard.engine, *resting)

    assert await cost() == alone


async def test_a_job_without_a_schedule_pays_nothing_for_those_that_have_one(one_shard: Store):
    engine = one_shard.engine

    async def cost(job_id: str) -> int:
        (taken,) = await claim(engine, 1)
        assert taken.job.id == job_id
        before = commands(one_shard)
        await engine.jobs.settle([completed(taken)])
        return commands(one_shard) - before

    await put(engine, new_schedule())
    ids = await submit(engine, new_job(), new_job())
    await cost(ids[0])
    plain = await cost(ids[1])
    await fire(engine, early(1, Overlap.ALLOW))

    scheduled = await cost(early(1, Overlap.ALLOW).job.id)

    # Its run and its schedule, which need not be looked at.
    assert scheduled - plain == 5


# ── what is refused ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["fire", "trigger"])
async def test_a_job_in_another_shard_than_its_schedule_is_refused(four_shards: Store, how: str):
    engine = four_shards.engine
    await put(engine, new_schedule())
    elsewhere = moved(
        of_occurrence("default", NIGHTLY, at(1)), shard_of_schedule("default", NIGHTLY) ^ 1
    )
    run = run_at(at(1), id=elsewhere)

    with pytest.raises(InvalidInput, match=r"in shard \d of 4 by its id, but in shard \d by its"):
        await (fire(engine, run) if how == "fire" else engine.schedules.trigger(NIGHTLY, run, **BY))

    assert await runs_of(engine) == []


async def test_a_job_of_a_schedule_has_no_idempotency_key(one_shard: Store):
    await put(one_shard.engine, new_schedule())
    run = run_at(at(1))

    with pytest.raises(InvalidInput, match="idempotency key"):
        await fire(one_shard.engine, replace(run, job=replace(run.job, key=key("mine"))))


@pytest.mark.parametrize("name", ["a\0b", "half \ud800", "x" * 2_000])
async def test_a_name_that_redis_cannot_keep_is_refused_and_is_nobodys(store: Store, name: str):
    schedules = store.engine.schedules

    with pytest.raises(InvalidName):
        await schedules.put_schedules([new_schedule("fine"), new_schedule(name)], by="alice")

    assert await schedules.schedule("fine") is None
    assert await schedules.schedule(name) is None
    assert (await schedules.runs(name, limit=5)).runs == []
    for verb in (schedules.hold_schedules, schedules.unhold_schedules, schedules.delete_schedules):
        assert [one.answer for one in await verb([name], **BY)] == [ScheduleAnswer.UNKNOWN]
    page = await schedules.schedules(ScheduleFilter(prefix=name), limit=5)
    assert (page.schedules, page.cursor) == ([], None)


# ── runs and jobs ────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_found_its_job_there_hears_how_it_ends(store: Store):
    engine = store.engine
    run = early(1, Overlap.SKIP)
    await submit(engine, run.job)
    await put(engine, new_schedule(due_ms=None))
    assert (await fire(engine, run)).started == ()
    assert await states_of(engine) == [RunState.STARTED]

    await engine.jobs.settle([dead(one) for one in await claim(engine, 1)])

    assert await states_of(engine) == [RunState.DEAD]
    assert await due_ids(engine) == [NIGHTLY]


async def test_a_job_of_another_schedule_is_left_as_it_is(one_shard: Store):
    engine = one_shard.engine
    run = early(1, Overlap.SKIP)
    await submit(engine, replace(run.job, schedule="another"))
    await put(engine, new_schedule())

    await fire(engine, run)

    record = await engine.inspector.job(run.job.id)
    assert record is not None
    assert (record.job.schedule, record.state) == ("another", JobState.WAITING)


async def test_runs_of_one_job_in_one_call_share_it(one_shard: Store):
    engine = one_shard.engine
    await put(engine, new_schedule())
    first = early(1, QUEUE_ALL)
    same = replace(early(2, QUEUE_ALL), job=first.job)

    said = await fire(engine, first, same)

    assert said.started == (first.job.id,)
    assert (await engine.inspector.counts())["waiting"] == 1
    assert len(await runs_of(engine)) == 2


async def test_the_runs_of_a_busy_schedule_stay_compact(one_shard: Store):
    engine = one_shard.engine
    await put(engine, new_schedule())
    for start in range(1, 201, 50):
        runs = [early(n, Overlap.ALLOW) for n in range(start, start + 50)]
        await fire(engine, *runs)
        await engine.jobs.settle([completed(one) for one in await claim(engine, 50)])
    await fire(engine)

    kept = one_shard.key(f"runs:succeeded:default%01{NIGHTLY}")

    assert one_shard.client.zcard(kept) == 100
    longest = max(len(run) for run in one_shard.client.zrange(kept, 0, -1))
    assert longest <= 64


async def test_schedules_are_listed_page_by_page_over_all_shards(store: Store):
    engine = store.engine
    names = [f"{n % 7}/{n:03}" for n in range(230)]
    for start in range(0, len(names), 100):
        await put(
            engine,
            *(
                new_schedule(name, tenant="rare" if name.endswith("9") else "default")
                for name in names[start : start + 100]
            ),
        )

    async def listed(which: ScheduleFilter, limit: int) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await engine.schedules.schedules(which, limit=limit, cursor=cursor)
            found += [one.id for one in page.schedules]
            if (cursor := page.cursor) is None:
                return found

    ordered = sorted(names, key=lambda name: (name.endswith("9"), name))  # `default` before `rare`
    assert await listed(ScheduleFilter(), 17) == ordered
    assert await listed(ScheduleFilter(), 230) == ordered
    rare = sorted(name for name in names if name.endswith("9"))
    assert await listed(ScheduleFilter(tenants=("rare",)), 5) == rare
    some = [name for name in ordered if name.startswith("3/")]
    assert await listed(ScheduleFilter(prefix="3/"), 10) == some


async def test_a_page_of_schedules_ends_after_a_bounded_look(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lamplighter.engines.redis.verbs.inspect_schedules.SCAN_LIMIT", 300)
    engine = store.engine
    names = [f"s{n:04}" for n in range(1_000)]
    for start in range(0, len(names), 100):
        await put(
            engine,
            *(
                new_schedule(name, type="rare" if name[-2:] == "99" else "work")
                for name in names[start : start + 100]
            ),
        )

    pages, cursor, found = 0, None, list[str]()
    while pages == 0 or cursor is not None:
        which = ScheduleFilter(types=("rare",))
        page = await engine.schedules.schedules(which, limit=50, cursor=cursor)
        found += [one.id for one in page.schedules]
        pages, cursor = pages + 1, page.cursor

    assert found == [name for name in names if name[-2:] == "99"]
    assert pages > 2


async def test_two_plans_for_one_schedule_in_a_call_follow_each_other(store: Store):
    engine = store.engine
    await put(engine, new_schedule())
    first = plan_of(await known(engine), early(1, QUEUE_ALL))
    second = replace(first, cursor_ms=at(1), next_cursor_ms=at(2), runs=(early(2, QUEUE_ALL),))

    said = await engine.schedules.fire([first, first, second])

    assert [one.answer for one in said] == [FireAnswer.DONE, FireAnswer.STALE, FireAnswer.DONE]
    assert await states_of(engine) == [RunState.STARTED, RunState.QUEUED]
