"""What prune does behind the port: pages of the index, keys, virtual times, several shards."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamplighter.connect import connect
from lamplighter.model.filters import Filter
from lamplighter.port.conformance.builders import claim, completed, key, new_job, submit
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.values import NewWorker, Retention, TypeInfo
from tests.servers.valkey import Server
from tests.unit.redis.stores import Store, opened

BY = {"by": "test", "reason": "for the test"}
HOUR_MS = 3_600_000
NOTHING_KEPT = Retention(finished_ms=0, finished_count=0, dead_ms=0, key_ms=0)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 1) as store:
        yield store


async def finished(store: Store, count: int) -> list[str]:
    """Submit jobs and let them succeed, in batches."""
    ids = await submit(store.engine, *(store.new_job() for _ in range(count)))
    while taken := await claim(store.engine, 100):
        await store.engine.jobs.settle([completed(one) for one in taken])
    return ids


async def prune_all(store: Store, retention: Retention = NOTHING_KEPT) -> int:
    removed = 0
    while True:
        step = await store.engine.jobs.prune(retention, 500)
        removed += step.jobs
        if not step.more:
            return removed


def pages(store: Store) -> dict[int, int]:
    """How many ids each page of the index has room for."""
    return {
        int(one.rpartition(b":")[2]): store.client.strlen(one) // 26
        for one in store.keys().get("page", [])
    }


async def test_pages_go_with_their_jobs_and_listings_begin_behind_them(store: Store):
    await finished(store, 1_000)
    assert pages(store) == {0: 256, 1: 256, 2: 256, 3: 233}
    store.clock.advance(ms=HOUR_MS)

    assert await prune_all(store) == 1_000

    assert pages(store) == {3: 233}
    assert store.client.get(store.key("oldest_page")) == b"3"
    (left,) = await submit(store.engine, store.new_job())
    found = await store.engine.inspector.jobs(Filter(), limit=10)
    assert [one.job.id for one in found.jobs] == [left]
    assert found.cursor is None


async def test_a_job_that_stays_keeps_its_own_place_in_the_index_and_no_page(store: Store):
    first = await submit(store.engine, store.new_job(delay_ms=10**9))
    await finished(store, 300)
    second = await submit(store.engine, store.new_job(delay_ms=10**9))
    await finished(store, 300)
    store.clock.advance(ms=HOUR_MS)

    assert await prune_all(store) == 600

    assert pages(store) == {0: 1, 1: 1, 2: 91}
    found = await store.engine.inspector.jobs(Filter(), limit=10)
    assert [one.job.id for one in found.jobs] == [*second, *first]
    assert await store.faults() == ()


async def test_the_page_that_grows_is_left_alone_until_it_is_full(store: Store):
    await finished(store, 200)
    store.clock.advance(ms=HOUR_MS)
    assert await prune_all(store) == 200
    assert pages(store) == {0: 201}

    more = await finished(store, 100)

    found = await store.engine.inspector.jobs(Filter(), limit=500)
    assert [one.job.id for one in found.jobs] == more[::-1]
    store.clock.advance(ms=HOUR_MS)
    assert await prune_all(store) == 100
    assert pages(store) == {1: 45}


async def test_an_id_that_was_removed_and_came_again_is_listed_once(store: Store):
    (first, *_) = await finished(store, 3)
    await store.engine.jobs.purge([first], **BY)
    again = store.new_job(id=first)
    await submit(store.engine, again)

    found = await store.engine.inspector.jobs(Filter(), limit=10)

    assert [one.job.id for one in found.jobs].count(first) == 1
    assert found.jobs[0].job.id == first
    assert await store.faults() == ()


async def test_keys_of_jobs_that_are_gone_go_although_many_others_stay(store: Store):
    kept = [store.new_job(key=key(f"kept {n}"), delay_ms=10**9) for n in range(700)]
    await submit(store.engine, *kept)
    store.clock.advance(ms=1)
    gone = [store.new_job(key=key(f"gone {n}")) for n in range(50)]
    await submit(store.engine, *gone)
    taken = await claim(store.engine, 100)
    await store.engine.jobs.settle([completed(one) for one in taken])
    store.clock.advance(ms=HOUR_MS)

    keys = sum([(await store.engine.jobs.prune(NOTHING_KEPT, 500)).keys for _ in range(3)])

    assert keys == 50
    assert store.client.zcard(store.key("keys")) == len(store.keys()["key"]) == 700


async def test_a_key_is_gone_once_its_own_age_is_reached(store: Store):
    await submit(store.engine, store.new_job(key=key()))
    (taken,) = await claim(store.engine, 1)
    await store.engine.jobs.settle([completed(taken)])
    store.clock.advance(ms=HOUR_MS)

    first = await store.engine.jobs.prune(Retention(finished_ms=0, key_ms=HOUR_MS), 100)
    store.clock.advance(ms=1)
    second = await store.engine.jobs.prune(Retention(finished_ms=0, key_ms=HOUR_MS), 100)

    assert [(one.jobs, one.keys) for one in (first, second)] == [(1, 0), (0, 1)]
    assert store.keys().keys() & {"key", "keys"} == set()


@pytest.mark.parametrize("types", [("work",), ("work", "other")])
async def test_virtual_times_go_once_the_clock_has_passed_them(
    store: Store, types: tuple[str, ...]
):
    # The last tenant has more work than the others, and moves the clock past them.
    for number in range(60):
        for _ in range(3 if number == 59 else 1):
            jobs = [store.new_job(one, tenant=f"t{number}") for one in types]
            await submit(store.engine, *jobs)
            taken = await claim(store.engine, 10, types=types)
            await store.engine.jobs.settle([completed(one) for one in taken])

    await prune_all(store)

    assert store.client.zrange(store.key("share:1"), 0, -1) == [b"t59"]


async def test_the_virtual_time_of_a_tenant_in_line_stays(store: Store):
    # Its turn for `other` woke before its hand-outs of `work`, so that its place is an old one.
    await submit(store.engine, store.new_job("other", tenant="a"))
    for _ in range(3):
        await submit(store.engine, *(store.new_job(tenant=one) for one in "ab"))
        taken = await claim(store.engine, 2)
        await store.engine.jobs.settle([completed(one) for one in taken])
    for _ in range(9):
        await submit(store.engine, store.new_job(tenant="b"))
        await store.engine.jobs.settle([completed(one) for one in await claim(store.engine, 1)])
    before = store.client.zscore(store.key("share:1"), "a")
    clock = float(store.client.hget(store.key("bands"), "1"))
    assert before <= clock

    store.clock.advance(ms=2 * HOUR_MS)
    await prune_all(store)

    assert store.client.zscore(store.key("share:1"), "a") == before


async def test_claims_of_an_hour_ago_are_forgotten(store: Store):
    for _ in range(5):
        await finished(store, 1)
    assert store.client.zcard(store.key("requests")) == 5
    store.clock.advance(ms=HOUR_MS + 1)

    pruned = await store.engine.jobs.prune(Retention(), 100)

    assert (pruned.jobs, pruned.others >= 5) == (0, True)
    assert store.client.exists(store.key("requests")) == 0


async def test_silent_workers_and_their_types_go(store: Store):
    type_ = TypeInfo(name="mail", schema="{}", hash="h", queue="q")
    for name in ("silent", "alive"):
        await store.engine.membership.join(
            NewWorker(id=name, host="h", pid=1, queues=("q",), slots=1, types=(type_,))
        )
    store.clock.advance(seconds=86_401)
    await store.engine.membership.beat("alive", 0)
    assert (await store.engine.jobs.prune(Retention(), 100)).others == 1
    assert [one.id for one in await store.engine.inspector.workers()] == ["alive"]
    assert len(await store.engine.inspector.types()) == 1

    store.clock.advance(seconds=8 * 86_400)

    assert (await store.engine.jobs.prune(Retention(), 100)).others == 2
    assert await store.engine.inspector.types() == []
    assert store.keys().keys() & {"worker", "workers", "types", "types_seen"} == set()


async def test_the_oldest_of_all_shards_go_when_there_are_too_many(tmp_path: Path):
    async with opened(tmp_path, 4) as store:
        ids: list[str] = []
        for _ in range(30):
            ids += await finished(store, 1)
            store.clock.advance(ms=1)
        store.clock.advance(ms=HOUR_MS)

        removed = [
            (await store.engine.jobs.prune(Retention(finished_count=12), 7)).jobs for _ in range(4)
        ]

        assert removed == [7, 7, 4, 0]
        left = [one for one in ids if await store.engine.inspector.job(one)]
        assert left == ids[18:]


async def test_a_step_over_several_shards_keeps_to_its_limit(tmp_path: Path):
    async with opened(tmp_path, 4) as store:
        await finished(store, 30)
        store.clock.advance(ms=HOUR_MS)

        steps = [await store.engine.jobs.prune(NOTHING_KEPT, 8) for _ in range(5)]

        assert [step.jobs for step in steps] == [8, 8, 8, 6, 0]
        assert [step.more for step in steps] == [True, True, True, False, False]


async def test_an_end_without_a_job_does_not_stand_in_the_way(store: Store):
    ids = await finished(store, 3)
    store.client.delete(store.key(f"job:{ids[0]}"))
    store.clock.advance(ms=HOUR_MS)

    assert await prune_all(store) == 3
    assert store.client.exists(store.key("ended:succeeded")) == 0


async def test_jobs_can_be_removed_when_the_memory_is_full(server: Server):
    clock = VirtualClock()
    engine = connect(server.url(), clock_ms=clock.now_ms)
    await engine.open()
    ids = await submit(engine, *(new_job() for _ in range(200)))
    taken = await claim(engine, 100)
    await engine.jobs.settle([completed(one) for one in taken])
    await engine.jobs.cancel(ids[150:], **BY)
    clock.advance(ms=HOUR_MS)
    with server.client() as client:
        client.config_set("maxmemory", 1)

    purged = await engine.jobs.purge(ids[150:], **BY)
    pruned = await engine.jobs.prune(NOTHING_KEPT, 500)

    assert {one.answer for one in purged} == {"done"}
    assert pruned.jobs == 100
    await engine.close()
