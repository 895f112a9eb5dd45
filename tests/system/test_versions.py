"""Two releases of one program on one store: a deploy must not cost a job."""

import asyncio
import signal
from contextlib import contextmanager
from functools import partial

import pytest

from lamplighter.model.job import Delivery, JobState, NewJob
from lamplighter.port.store import queue_topic
from lamplighter.port.values import Why
from tests.servers.redis_stores import redis_prefixes, shared_redis_ends
from tests.servers.stores import postgres_schemas, shared_postgres_ends
from tests.system.conftest import PATIENCE, World

__all__ = ["shared_postgres_ends", "shared_redis_ends"]

OLD, NEW = "tests.system.old_release:app", "tests.system.new_release:app"


@contextmanager
def sqlite_files(folder):
    yield lambda: f"sqlite:///{folder}/jobs.db"


STORES = {
    "sqlite": sqlite_files,
    "postgres": postgres_schemas,
    "redis": redis_prefixes,
    "redis-sharded": partial(redis_prefixes, shards="4"),
}


@pytest.fixture(params=STORES)
async def world(request, tmp_path):
    with STORES[request.param](tmp_path) as fresh:
        world = World(tmp_path, fresh())
        await world.engine.open()
        yield world
        await world.close()


async def submit(world, count: int, type: str = "charge", *, queue: str = "default") -> list[str]:
    delivery = Delivery.AT_LEAST_ONCE if type == "invoice" else Delivery.AT_MOST_ONCE
    jobs = [
        NewJob(
            id=world.new_id(n),
            type=type,
            queue=queue,
            args=b'{"order": %d, "coupon": "SPRING"}' % n,
            delivery=delivery,
        )
        for n in range(count)
    ]
    await world.engine.jobs.submit(jobs)
    await world.engine.wakeup.notify(queue_topic(queue))
    return [job.id for job in jobs]


async def states(world, ids) -> list[JobState]:
    return [(await world.engine.inspector.job(job_id)).state for job_id in ids]


async def test_an_old_and_a_new_release_run_all_jobs_of_the_new_one_and_charge_nothing(world):
    await asyncio.gather(world.worker(OLD), world.worker(NEW))

    ids = await submit(world, 20) + await submit(world, 20, "invoice")
    ids += await submit(world, 4, "label")
    records = [await world.ended(job_id) for job_id in ids]

    assert [record.state for record in records] == [JobState.SUCCEEDED] * 44
    assert {record.job.attempt for record in records} == {0}
    assert {record.job.losses for record in records} == {0}
    assert sorted(line[0] for line in world.runs.lines(what="new")) == sorted(ids)


async def test_jobs_of_a_release_that_is_not_there_wait_for_it(world):
    await world.worker(OLD)
    ids = await submit(world, 20)

    async with asyncio.timeout(PATIENCE):
        while not await waits(world, ids):  # noqa: ASYNC110 - the store says it
            await asyncio.sleep(0.05)
    assert await states(world, ids) == [JobState.WAITING] * 20
    (reason, *_) = (await world.engine.inspector.explain(ids[0])).reasons
    assert reason.why is Why.NO_VERSION
    assert "charge(order: integer)" in reason.text

    await world.worker(NEW)
    records = [await world.ended(job_id) for job_id in ids]

    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert {record.job.attempt for record in records} == {0}


async def test_a_job_waits_for_a_version_that_so_far_serves_another_queue_alone(world):
    old = await world.worker(OLD, queues=["bulk"])
    await world.worker(NEW, queues=["fast"])
    (job_id,) = await submit(world, 1, queue="bulk")
    async with asyncio.timeout(PATIENCE):
        while (await world.engine.inspector.job(job_id)).error is None:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)

    old.signal(signal.SIGTERM)
    await old.ended()
    await world.worker(NEW, queues=["bulk"])

    assert (await world.ended(job_id)).state is JobState.SUCCEEDED


async def waits(world, ids) -> bool:
    found = [await world.engine.inspector.explain(job_id) for job_id in ids]
    return all(one.reasons[0].why is Why.NO_VERSION for one in found)


async def test_a_job_that_nobody_accepts_is_dead_after_the_time_for_it(world):
    await world.worker(OLD, version_wait=1.0)

    record = await world.ended((await submit(world, 1))[0])

    assert record.state is JobState.DEAD
    assert "charge(order: integer, coupon: string)" in record.reason
    assert "charge(order: integer)" in record.reason
    assert record.job.attempt == 0
