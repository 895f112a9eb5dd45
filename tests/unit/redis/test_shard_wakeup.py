"""Who waits for work hears of it, whichever shard it comes to and whoever sends it."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest

from lamplighter import App
from lamplighter.connect import connect
from lamplighter.engines.redis.shards import shard_of
from lamplighter.model.errors import StoreClosed
from lamplighter.model.ids import shard_of_key
from lamplighter.port.conformance.builders import claim, new_id, new_job, submit
from lamplighter.port.store import Engine, queue_topic
from tests.servers.redis_stores import redis_prefixes

SHARDS = 3
SOON = 0.01
LONG = 20.0
TOPIC = queue_topic("default")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with redis_prefixes(tmp_path, shards=str(SHARDS)) as fresh:
        yield fresh()


@pytest.fixture
async def idle(url: str) -> AsyncIterator[Engine]:
    """A worker's engine that has found nothing to do."""
    engine = connect(url)
    await engine.open()
    await engine.wakeup.wait([TOPIC], SOON, types=("work",))
    yield engine
    await engine.close()


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:
    async with App(url) as app:
        yield app


@pytest.fixture
def work(app: App):
    @app.job
    def work(number: int) -> None: ...

    return work


def key_in(shard: int) -> str:
    """A key whose jobs are in this shard."""
    return next(
        key for key in map(str, count()) if shard_of_key("default", "", key) % SHARDS == shard
    )


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_a_job_of_a_program_wakes_who_waits(idle: Engine, work, shard: int):
    waiting = asyncio.create_task(idle.wakeup.wait([TOPIC], LONG, types=("work",)))
    await asyncio.sleep(SOON)  # it may wait by then or not: nothing is missed either way

    handle = await work.options(idempotency_key=key_in(shard)).submit(1)

    assert await waiting
    assert shard_of(handle.id, SHARDS) == shard
    assert [one.job.id for one in await claim(idle, 10)] == [handle.id]


async def test_every_batch_of_a_program_wakes_who_waits(idle: Engine, app: App, work):
    found: set[int] = set()
    while len(found) < SHARDS:
        handles = await app.submit_many([work.call(number) for number in range(3)])

        assert await idle.wakeup.wait([TOPIC], LONG, types=("work",))
        taken = [one.job.id for one in await claim(idle, 10)]
        assert taken == [one.id for one in handles]
        found |= {shard_of(one, SHARDS) for one in taken}


def test_a_forked_child_leaves_its_parents_shards_alone_and_wakes_it(url: str):
    async def parent() -> None:
        engine = connect(url)
        await engine.open()
        for shard in range(SHARDS):
            await engine.wakeup.wait([TOPIC], SOON)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    asyncio.events._set_running_loop(None)
                    asyncio.run(_in_child(engine, url, shard))
                    status = 0
                finally:
                    os._exit(status)
            _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - nothing else is to happen
            assert status == 0

            assert await engine.wakeup.wait([TOPIC], LONG)
            (taken,) = await claim(engine, 10)
            assert shard_of(taken.job.id, SHARDS) == shard
        await engine.close()

    asyncio.run(parent())


async def _in_child(engine: Engine, url: str, shard: int) -> None:
    job = new_job(id=new_id(shard))
    with pytest.raises(StoreClosed, match="forked"):
        await engine.jobs.submit([job])
    own = connect(url)
    await own.open()
    await submit(own, job)
    await own.wakeup.notify(TOPIC)
    await own.close()
