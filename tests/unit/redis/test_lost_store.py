"""A server that has lost its data while processes run: refused at once, and nothing is written."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import redis

from lamplighter.connect import connect
from lamplighter.model.errors import StoreLost
from lamplighter.port.conformance import builders
from lamplighter.port.conformance.schedule_builders import new_schedule
from lamplighter.port.store import Engine, queue_topic
from lamplighter.port.values import QueueSettings
from tests.servers.redis_stores import with_options
from tests.servers.valkey import Server, replica

AT_ONCE = 2.0
LONG = 20.0
MOST_SHARDS = 4


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Engine]:
    engine = connect(url)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


@pytest.fixture
async def engine(server: Server) -> AsyncIterator[Engine]:
    async with opened(server.url()) as engine:
        yield engine


@pytest.fixture
def other(server: Server):
    """A connection of another make."""
    with server.client() as client:
        yield client


WRITES: dict[str, Callable[[Engine], Awaitable[object]]] = {
    "submit": lambda engine: builders.submit(engine, builders.new_job()),
    "claim": lambda engine: engine.jobs.claim(builders.request()),
    "rescue": lambda engine: engine.jobs.rescue(10),
    "cancel": lambda engine: engine.jobs.cancel([builders.new_id()], by="ada", reason=""),
    "put_schedules": lambda engine: engine.schedules.put_schedules([new_schedule()], by="ada"),
    "beat": lambda engine: engine.membership.beat("w-1", 0),
    "lead": lambda engine: engine.membership.lead("prune", "w-1", 1000),
    "put_queue": lambda engine: engine.settings.put_queue("q", QueueSettings(), by="a", reason=""),
    "tokens": lambda engine: engine.access.tokens(limit=10),
    "job": lambda engine: engine.inspector.job(builders.new_id()),
    "queues": lambda engine: engine.inspector.queues(),
}


@pytest.mark.parametrize("name", WRITES)
async def test_a_call_is_refused_at_once_and_writes_nothing(
    engine: Engine, other: redis.Redis, name: str
):
    await builders.submit(engine, builders.new_job())
    other.flushall()

    async with asyncio.timeout(AT_ONCE):
        with pytest.raises(StoreLost) as refused:
            await WRITES[name](engine)

    assert "is gone" in refused.value.cause
    assert "lamplighter migrate" in refused.value.hint
    assert other.dbsize() == 0


async def test_a_claim_that_was_handed_out_before_cannot_be_renewed_or_settled(
    engine: Engine, server: Server, other: redis.Redis
):
    taken = await builders.running(engine)
    other.flushall()

    with pytest.raises(StoreLost):
        await engine.jobs.settle([builders.completed(taken)])
    await connect(server.url()).migrate()

    settled = await builders.settle_one(engine, builders.completed(taken))
    assert settled.answer.value == "lost"


async def test_the_error_does_not_show_the_password(server: Server, other: redis.Redis):
    other.execute_command("ACL", "SETUSER", "ada", "on", ">hidden", "~*", "+@all")
    async with opened(server.url(login="ada:hidden@")) as engine:
        other.flushall()
        with pytest.raises(StoreLost) as refused:
            await engine.inspector.queues()
    assert "hidden" not in str(refused.value)
    assert f"ada:***@127.0.0.1:{server.port}" in str(refused.value)


async def test_every_shard_sees_that_it_is_gone(server: Server, other: redis.Redis):
    async with opened(server.url(shards="4")) as engine:
        other.flushall()
        for shard in range(MOST_SHARDS):
            with pytest.raises(StoreLost):
                await engine.jobs.submit([builders.new_job(id=builders.new_id(shard))])
    assert other.dbsize() == 0


async def test_a_shard_that_has_lost_its_mark_is_refused_and_named(
    server: Server, other: redis.Redis
):
    url = server.url(shards="4")
    async with opened(url):
        (mark,) = other.keys("{lamp:2}:mark:*")
        other.delete(mark)
    for call in (connect(url).open, connect(url).migrate):
        with pytest.raises(StoreLost) as refused:
            await call()
        assert mark.decode() in refused.value.cause


# ── the store is made anew ───────────────────────────────────────────────────────────────────


async def test_after_migrate_running_processes_go_on(
    engine: Engine, server: Server, other: redis.Redis, caplog: pytest.LogCaptureFixture
):
    other.flushall()
    with pytest.raises(StoreLost):
        await builders.submit(engine, builders.new_job())
    assert (await connect(server.url()).migrate())[0] == 0

    with caplog.at_level(logging.WARNING):
        (job_id,) = await builders.submit(engine, builders.new_job())
        await builders.submit(engine, builders.new_job())

    assert (await builders.claim_one(engine)).job.id == job_id
    assert caplog.text.count("another one is in its place") == 1
    assert "is gone" in caplog.text


async def test_a_new_process_opens_the_emptied_server_as_if_it_were_new(
    engine: Engine, server: Server, other: redis.Redis
):
    other.flushall()
    with pytest.raises(StoreLost):
        await engine.membership.beat("w-1", 0)

    async with opened(server.url()) as second:
        (job_id,) = await builders.submit(second, builders.new_job())
        assert (await builders.claim_one(engine)).job.id == job_id


async def test_who_waits_for_news_hears_those_of_the_new_store(
    engine: Engine, server: Server, other: redis.Redis
):
    topic = queue_topic("default")
    for _ in range(20):  # its numbers are higher than those of the next store
        await engine.wakeup.notify(topic)
        await asyncio.sleep(0.005)
        await engine.wakeup.wait([topic], 0.01)
    other.flushall()
    await connect(server.url()).migrate()
    await engine.membership.beat("w-1", 0)

    waiting = asyncio.create_task(engine.wakeup.wait([topic], LONG))
    await asyncio.sleep(0.2)
    async with opened(server.url()) as second, asyncio.timeout(AT_ONCE):
        await second.wakeup.notify(topic)
        assert await waiting


async def test_by_a_setting_a_running_process_makes_it_anew(
    server: Server, other: redis.Redis, caplog: pytest.LogCaptureFixture
):
    async with opened(server.url(on_data_loss="recreate", shards="4")) as engine:
        other.flushall()
        ids = [
            (await builders.submit(engine, builders.new_job(id=builders.new_id(shard))))[0]
            for shard in range(MOST_SHARDS)
        ]
        claims = [await builders.claim_one(engine) for _ in ids]
        assert {claim.job.id for claim in claims} == set(ids)
    assert "is gone" in caplog.text


async def test_a_store_that_was_made_anew_with_other_shards_is_not_used(
    engine: Engine, server: Server, other: redis.Redis
):
    other.flushall()
    await connect(server.url(shards="4")).migrate()

    with pytest.raises(StoreLost, match="4 shards") as refused:
        await builders.submit(engine, builders.new_job())

    assert "restart" in refused.value.hint


async def test_a_restart_onto_an_empty_disk_is_noticed(engine: Engine, server: Server):
    await builders.submit(engine, builders.new_job())
    server.stop()
    shutil.rmtree(server.home / "appendonlydir")
    server.restart()

    with pytest.raises(StoreLost):
        await builders.submit(engine, builders.new_job())
    with server.client() as client:
        assert client.dbsize() == 0

    await connect(server.url()).migrate()
    await builders.submit(engine, builders.new_job())


async def test_a_replicated_write_is_refused_too(server: Server, other: redis.Redis, tmp_path):
    with replica(server, tmp_path):
        async with opened(server.url(durability="replicated")) as engine:
            await builders.submit(engine, builders.new_job())
            other.flushall()
            with pytest.raises(StoreLost):
                await builders.submit(engine, builders.new_job())
            await connect(with_options(server.url(), durability="replicated")).migrate()
            await builders.submit(engine, builders.new_job())
