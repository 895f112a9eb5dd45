"""Claims over several shards: what they cost, and what is known when a shard does not answer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.engines.redis.shards import shard_of, shard_of_text
from lamplighter.engines.redis.verbs import claim as verb
from lamplighter.model.errors import StoreBusy, StoreError
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    new_id,
    new_job,
    request,
    submit,
)
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest
from tests.proxies.link import Link
from tests.proxies.redis_wire import RedisWire
from tests.servers.valkey import Server
from tests.unit.redis.stores import Store, opened

SHARDS = 3


def asked_from(first: int, limit: int = 5) -> ClaimRequest:
    """A request that goes to this shard first, and then to those behind it."""
    while True:
        nonce = runtime.nonce()
        if shard_of_text(nonce, SHARDS) == first:
            return request(limit=limit, nonce=nonce)


async def submitted(engine: Engine, shard: int, count: int) -> list[str]:
    return await submit(engine, *(new_job(id=new_id(shard)) for _ in range(count)))


# ── what it costs ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, SHARDS) as store:
        yield store


async def scripts_of(store: Store, asked: ClaimRequest) -> tuple[int, int]:
    """How many jobs a claim gets, and how many scripts that takes."""

    def scripts() -> int:
        stats = store.client.info("commandstats")
        return sum(one["calls"] for name, one in stats.items() if name.startswith("cmdstat_eval"))

    before = scripts()
    answer = await store.engine.jobs.claim(asked)
    return len(answer.claims), scripts() - before


async def test_a_claim_asks_no_more_shards_than_it_needs(store: Store):
    await submitted(store.engine, 1, 1)
    await store.engine.jobs.claim(asked_from(0))  # the scripts are known from now on
    for shard in range(SHARDS):
        await submitted(store.engine, shard, 8)

    assert await scripts_of(store, asked_from(1, 8)) == (8, 1)
    # The first has nothing any more; when another gives something, the first has to know of it.
    assert await scripts_of(store, asked_from(1, 8)) == (8, 2 + 1)
    assert await scripts_of(store, asked_from(1, 8)) == (8, 3 + 1)
    assert await scripts_of(store, asked_from(1, 8)) == (0, SHARDS)


async def test_a_claim_starts_at_every_shard_now_and_then(store: Store):
    for shard in range(SHARDS):
        await submitted(store.engine, shard, 100)

    firsts = [(await claim(store.engine, 1))[0].job.id for _ in range(60)]

    assert {shard_of(one, SHARDS) for one in firsts} == set(range(SHARDS))


async def test_claims_that_are_answered_leave_nothing_in_memory(store: Store):
    await submitted(store.engine, 2, 20)
    for first in (0, 1, 2):
        asked = asked_from(first, 2)
        first_time, again = [await store.engine.jobs.claim(asked) for _ in range(2)]
        assert first_time.claims == again.claims
    await claim(store.engine, 100)
    await claim(store.engine, 100)

    assert not any(verb._open.values())


async def test_what_is_remembered_of_failed_claims_is_bounded():
    class Nobody:
        shards = 2

        async def run(self, script, args, *, shard=0, urgent=False):
            raise StoreBusy("nobody answers", hint="wait")

    call = Nobody()
    asked = [request() for _ in range(verb._MOST_OPEN + 50)]
    for one in asked:
        with pytest.raises(StoreBusy):
            await verb.claim(call, one)

    assert list(verb._open[call]) == [one.nonce for one in asked[50:]]


# ── shards that do not answer ────────────────────────────────────────────────────────────────


@pytest.fixture
def link(server: Server):
    with Link(("127.0.0.1", server.port), wire=RedisWire) as link:
        yield link


@pytest.fixture
async def engine(link: Link) -> AsyncIterator[Engine]:
    engine = connect(f"redis://127.0.0.1:{link.port}?shards={SHARDS}", deadline=1.0)
    await engine.open()
    await engine.jobs.claim(request())  # the server knows our scripts from here on
    yield engine
    link.heal()
    await engine.close()


def lose_replies_of(link: Link, shard: int) -> None:
    """What this shard is asked is done, but nobody learns of it."""
    place = b"{lamp:%d}:" % shard
    link.cut_replies(when=lambda asked: b"EVAL" in asked[:40] and place in asked)


async def test_a_claim_that_failed_gets_the_same_jobs_when_it_is_repeated(
    engine: Engine, link: Link
):
    ids = await submitted(engine, 1, 2)
    asked = asked_from(0)
    lose_replies_of(link, 1)
    with pytest.raises(StoreError):
        await engine.jobs.claim(asked)
    link.heal()
    earlier = await submitted(engine, 0, 3)

    again = await engine.jobs.claim(asked)

    assert [one.job.id for one in again.claims] == ids
    assert (await engine.jobs.claim(asked)).claims == again.claims
    assert sorted(one.job.id for one in await claim(engine, 10)) == sorted(earlier)


async def test_a_claim_that_was_given_up_gets_the_same_jobs_when_it_is_repeated(
    engine: Engine, link: Link, until
):
    ids = await submitted(engine, 1, 2)
    asked = asked_from(0)
    lose_replies_of(link, 1)
    waiting = asyncio.create_task(engine.jobs.claim(asked))
    await until(lambda: link.cuts)
    waiting.cancel()
    await asyncio.wait({waiting})
    link.heal()
    await submitted(engine, 0, 3)

    assert [one.job.id for one in (await engine.jobs.claim(asked)).claims] == ids


async def test_what_a_claim_has_got_is_not_lost_with_a_shard_that_does_not_answer(
    engine: Engine, link: Link
):
    first = await submitted(engine, 0, 2)
    second = await submitted(engine, 1, 2)
    asked = asked_from(0)
    lose_replies_of(link, 1)

    answer = await engine.jobs.claim(asked)

    assert [one.job.id for one in answer.claims] == first
    assert answer.poll_after_ms == 0
    link.heal()
    again = await engine.jobs.claim(asked)
    assert [one.job.id for one in again.claims] == first + second
    settled = await engine.jobs.settle([completed(one) for one in again.claims])
    assert {one.answer for one in settled} == {"done"}


async def test_a_claim_whose_reply_was_lost_on_the_way_is_asked_again_and_goes_out_once(
    engine: Engine, link: Link
):
    ids = await submitted(engine, 1, 2)
    link.cut_replies(2, when=lambda asked: b"EVAL" in asked[:40] and b"{lamp:1}:" in asked)
    asked = asked_from(0)

    answer = await engine.jobs.claim(asked)
    earlier = await submitted(engine, 0, 3)

    assert [one.job.id for one in answer.claims] == ids
    assert (await engine.jobs.claim(asked)).claims == answer.claims
    assert sorted(one.job.id for one in await claim(engine, 10)) == sorted(earlier)


async def test_a_claim_that_reached_nobody_is_a_new_one_when_it_is_repeated(
    engine: Engine, link: Link
):
    ids = await submitted(engine, 2, 2)
    asked = asked_from(0)
    link.refuse()
    with pytest.raises(StoreError):
        await engine.jobs.claim(asked)
    link.heal()

    assert [one.job.id for one in (await engine.jobs.claim(asked)).claims] == ids
