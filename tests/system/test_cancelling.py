"""How soon a running handler hears of a cancel, on every engine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from lamplighter import App, runtime
from lamplighter.model.job import JobState
from tests.servers.redis_stores import redis_prefixes, shared_redis_ends
from tests.servers.stores import postgres_schemas, shared_postgres_ends
from tests.system.conftest import World

__all__ = ["shared_postgres_ends", "shared_redis_ends"]

BOUND = 0.3
TIMES = 5
SERVERS: dict[str, Callable[[Path], AbstractContextManager[Callable[[], str]]]] = {
    "postgres": postgres_schemas,
    "redis": redis_prefixes,
    "redis-sharded": partial(redis_prefixes, shards="4"),
}


@pytest.fixture(params=["sqlite", *SERVERS])
def url(request, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/jobs.db"
        return
    with SERVERS[request.param](tmp_path) as fresh:
        yield fresh()


@pytest.fixture
async def world(tmp_path: Path, url: str) -> AsyncIterator[World]:
    world = World(tmp_path, url)
    await world.engine.open()
    yield world
    await world.close()


@pytest.mark.parametrize("after", [0.0, 0.7], ids=["at once", "after a while"])
async def test_a_running_coroutine_is_cancelled_at_once(world: World, after: float):
    await world.worker(poll=1.0)
    app = App(world.url)
    took: list[float] = []
    for _ in range(TIMES):
        job_id = await world.submit("wait")
        await world.runs.seen(job_id, "start")
        await asyncio.sleep(after)

        began = runtime.monotonic()
        await app.handle(job_id).cancel()
        await world.runs.seen(job_id, "stopped")
        took.append(runtime.monotonic() - began)

        assert (await world.ended(job_id)).state is JobState.CANCELLED
    await app.close()
    # The median: what else the machine does is not our concern.
    assert median(took) <= BOUND, took
