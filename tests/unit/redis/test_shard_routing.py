"""Where a program's jobs go in a store of several shards."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from lamplighter import App
from lamplighter.engines.redis.shards import shard_of
from lamplighter.model import ids
from lamplighter.port.conformance.builders import claim
from tests.servers.redis_stores import client_of, redis_prefixes

SHARDS = 4


@pytest.fixture
def url(tmp_path: Path):
    with redis_prefixes(tmp_path, shards=str(SHARDS)) as fresh:
        yield fresh()


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    async with App(url) as app:
        yield app


@pytest.fixture
def work(app: App):
    @app.job
    def work(number: int) -> None: ...

    return work


def shards_of(handles) -> set[int]:
    return {shard_of(one.id, SHARDS) for one in handles}


async def in_order(app: App, many: int) -> list[str]:
    taken = await claim(await app.engine(), many)
    return [one.job.id for one in taken]


def submits(url: str) -> int:
    """How many scripts the server has run that store jobs: each asks for new numbers once."""
    with client_of(url) as client:
        return client.info("commandstats").get("cmdstat_incrby", {"calls": 0})["calls"]


async def test_what_is_submitted_together_is_one_write_in_one_shard(app: App, work, url: str):
    before = submits(url)
    for _ in range(10):
        handles = await app.submit_many([work.call(n) for n in range(30)])
        assert len(shards_of(handles)) == 1
        assert await in_order(app, 30) == [one.id for one in handles]

    assert submits(url) - before == 10


async def test_of_a_long_list_each_hundred_is_in_one_shard_and_in_order(app: App, work):
    handles = await app.submit_many([work.call(n) for n in range(1_200)])

    for start in range(0, 1_200, 100):
        assert len(shards_of(handles[start : start + 100])) == 1
    taken = await in_order(app, 1_200)
    for start in range(0, 1_200, 100):
        ids = [one.id for one in handles[start : start + 100]]
        assert [one for one in taken if one in set(ids)] == ids


async def test_what_is_submitted_apart_spreads_over_all_shards(app: App, work):
    single = [await work.submit(n) for n in range(80)]
    batches = [(await app.submit_many([work.call(n), work.call(n)]))[0] for n in range(80)]

    assert shards_of(single) == set(range(SHARDS))
    assert shards_of(batches) == set(range(SHARDS))


async def test_calls_that_were_made_apart_go_together(app: App, work):
    calls = []
    for number in range(20):
        calls.append(work.call(number))
        await work.submit(number)

    handles = await app.submit_many(calls)

    assert len(shards_of(handles)) == 1
    assert [one.id for one in handles] == [call.id for call in calls]


async def test_calls_that_were_made_at_once_and_go_apart_spread_over_all_shards(app: App, work):
    calls = [work.call(number) for number in range(80)]

    handles = [(await app.submit_many([call]))[0] for call in calls]

    assert shards_of(handles) == set(range(SHARDS))


async def test_a_call_whose_id_somebody_knows_keeps_it(app: App, work):
    calls = []
    for number in range(20):
        calls.append(work.call(number))
        await work.submit(number)
    known = [call.id for call in calls]

    handles = await app.submit_many(calls)

    assert [one.id for one in handles] == known


async def test_the_same_calls_again_are_the_same_jobs(app: App, work):
    calls = [work.call(number) for number in range(20)]
    first = await app.submit_many(calls)
    await work.submit(0)

    again = await app.submit_many(calls)

    assert [one.id for one in again] == [one.id for one in first]
    assert all(one.existing for one in again)


async def test_a_key_meets_itself_from_wherever_it_is_submitted(app: App, work, url: str):
    first = [await work.options(idempotency_key=f"k{n}").submit(n) for n in range(40)]

    async with App(url) as other:

        @other.job(name=work.name)
        def same(number: int) -> None: ...

        again = [await same.options(idempotency_key=f"k{n}").submit(n) for n in range(40)]
    together = await app.submit_many(
        [work.options(idempotency_key=f"k{n}").call(n) for n in range(40)]
    )

    assert [one.id for one in again] == [one.id for one in first]
    assert [one.id for one in together] == [one.id for one in first]
    assert shards_of(first) == set(range(SHARDS))
    assert [ids.shard_of(one.id) for one in first] == [
        ids.shard_of_key("default", "", f"k{n}") for n in range(40)
    ]
    assert (await (await app.engine()).inspector.counts())["waiting"] == 40


def test_keys_spread_over_all_bits_and_their_parts_are_told_apart():
    numbers = count()
    found = {ids.shard_of_key("default", "", f"key {next(numbers)}") for _ in range(20_000)}

    assert len(found) == 1 << ids.SHARD_BITS
    parts = [("a", "b", "c"), ("ab", "", "c"), ("a", "", "bc"), ("", "a", "bc")]
    assert len({ids.shard_of_key(*one) for one in parts}) == len(parts)
    # Stored jobs rely on it for ever.
    assert ids.shard_of_key("default", "", "key") == 0x2BB


def test_an_id_is_moved_to_another_shard_and_nothing_else_changes():
    job_id = ids.compose(1_700_000_000_000, 5, 12345)

    assert ids.moved(job_id, 1023) == ids.compose(1_700_000_000_000, 1023, 12345)
