"""A client that is frozen while it has one job locked costs nobody else a lease or a result."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.address import parse
from lamplighter.model.job import JobState
from tests.servers.stores import postgres_schemas, shared_postgres_ends
from tests.system.conftest import World

__all__ = ["shared_postgres_ends"]

LEASE = 3.0
PROMPTLY = 3.0


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with postgres_schemas(tmp_path) as fresh:
        yield fresh()


@pytest.fixture
async def world(tmp_path: Path, url: str) -> AsyncIterator[World]:
    world = World(tmp_path, url)
    await world.engine.open()
    yield world
    await world.close()


async def test_only_the_locked_job_is_taken_from_its_worker(world: World, url: str):
    worker = await world.worker(lease=LEASE)
    locked, *others = [await world.submit("wait") for _ in range(4)]
    for job_id in (locked, *others):
        await world.runs.seen(job_id, "start")

    with psycopg.connect(url.partition("?")[0]) as frozen:
        frozen.execute(
            f"SELECT FROM {parse(url).schema}.job WHERE id = %s FOR UPDATE",
            (UUID(bytes=ids.uuid(locked)),),
        )
        await world.runs.seen(locked, "stopped")
        await asyncio.sleep(LEASE)
        frozen.rollback()
    world.runs.release()

    records = [await world.ended(job_id) for job_id in others]
    assert [(one.state, one.lease) for one in records] == [(JobState.SUCCEEDED, 1)] * 3
    assert len(worker.child_pids()) == 1
    again = await world.ended(locked)
    assert (again.state, again.job.losses, again.job.suspect) == (JobState.SUCCEEDED, 0, False)


async def test_what_the_others_come_to_is_written_while_one_job_is_locked(world: World, url: str):
    await world.worker()
    locked = await world.submit("wait")
    await world.runs.seen(locked, "start")

    with psycopg.connect(url.partition("?")[0]) as frozen:
        frozen.execute(
            f"SELECT FROM {parse(url).schema}.job WHERE id = %s FOR UPDATE",
            (UUID(bytes=ids.uuid(locked)),),
        )
        world.runs.release()
        await world.runs.seen(locked, "end")
        async with asyncio.timeout(PROMPTLY):
            for _ in range(5):
                await world.ended(await world.submit("add", a=1, b=2))
        frozen.rollback()

    record = await world.ended(locked)
    assert (record.state, record.lease) == (JobState.SUCCEEDED, 1)
    assert len(world.runs.lines(locked, "start")) == 1
