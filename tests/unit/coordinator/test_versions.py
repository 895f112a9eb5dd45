"""Jobs that no live version took, and those whose version has gone, are looked at again."""

from dataclasses import replace

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.coordinator import Rescuer, VersionWatch
from lamplighter.coordinator.versions import BATCH, ROLE, WORKER
from lamplighter.fleet import Fleet
from lamplighter.model.job import NO_VERSION, Delivery, ErrorInfo, JobState, Refusal
from lamplighter.model.outcome import Misfit
from lamplighter.port.conformance.builders import claim, new_job, settle, submit
from lamplighter.port.values import NewWorker, TypeInfo
from tests.unit.server.clocks import Clock

SETTINGS = Settings()
OLD = '{"properties": {"a": {}}, "additionalProperties": false}'
NEW = '{"properties": {"a": {}, "b": {}}, "additionalProperties": false}'
ERROR = ErrorInfo(type="DoesNotFit", message="no", refusals=(Refusal(version="old", since_ms=0),))


@pytest.fixture
async def engine(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    await engine.open()
    yield engine
    await engine.close()


async def join(engine, schema: str, digest: str, slot: int, queue: str = "default") -> None:
    info = TypeInfo(name="work", schema=schema, hash=digest, queue="default")
    await engine.membership.join(
        NewWorker(
            id=f"{digest}-{slot}-{queue}",
            host="h",
            pid=1,
            queues=(queue,),
            slots=4,
            types=(info,),
            version_slot=slot,
        )
    )


async def misfits(engine, count: int = 1, version: str = NO_VERSION, **options) -> list[str]:
    """Make jobs that were refused just now."""
    made = [new_job(args=b'{"a": 1, "b": 2}', **options) for _ in range(count)]
    ids = await submit(engine, *made)
    error = replace(ERROR, refusals=(Refusal(version="old", since_ms=runtime.now_ms()),))
    claims = await claim(engine, count)
    await engine.jobs.settle([settle(one, Misfit(error, version)) for one in claims])
    return ids


async def taken(engine, *requirements: str, limit: int = 1_000) -> set[str]:
    return {one.job.id for one in await claim(engine, limit, requirements=requirements)}


async def test_a_job_moves_to_the_version_that_has_joined(engine):
    await join(engine, OLD, "old", 1)
    watch = VersionWatch(engine, SETTINGS)
    (job_id,) = await misfits(engine)
    await watch.step()
    assert await taken(engine, "version:2", "version:1", "") == set()

    await join(engine, NEW, "new", 2)
    await watch.step()

    assert await taken(engine, "version:2") == {job_id}


async def test_a_round_sees_every_job_of_many_tenants_once(engine):
    await join(engine, OLD, "old", 1)
    await join(engine, NEW, "new", 2)
    ids = [
        job_id
        for tenant, count in (("a", 3 * BATCH), ("b", 1), ("c", BATCH))
        for job_id in await misfits(engine, count, tenant=tenant)
    ]
    watch = VersionWatch(engine, SETTINGS)

    await watch.step()

    assert await taken(engine, "version:2") == set(ids)


async def test_a_round_over_jobs_that_nobody_takes_comes_to_an_end(engine):
    await join(engine, OLD, "old", 1)
    ids = await misfits(engine, BATCH + 1, tenant="a") + await misfits(engine, 1, tenant="b")
    watch = VersionWatch(engine, SETTINGS)

    while await watch.step() == 0:
        pass

    assert await taken(engine, NO_VERSION) == set(ids)


async def test_a_job_whose_version_has_gone_runs_anywhere_when_all_take_it(engine):
    await join(engine, NEW, "new", 1)
    (job_id,) = await misfits(engine, version="version:3")

    await VersionWatch(engine, SETTINGS).step()

    assert await taken(engine, "") == {job_id}


async def test_a_job_waits_for_a_slot_that_somebody_holds_in_its_queue(engine):
    await join(engine, OLD, "old", 1)
    await join(engine, NEW, "new", 2, queue="letters")
    await join(engine, NEW, "new", 3)
    (job_id,) = await misfits(engine, version="version:2")

    await VersionWatch(engine, SETTINGS).step()

    assert await taken(engine, "version:3") == {job_id}


async def test_a_job_is_looked_at_again_when_its_version_leaves_its_queue(engine):
    await join(engine, OLD, "old", 1)
    await join(engine, NEW, "new", 2)
    await join(engine, NEW, "new", 3)
    (job_id,) = await misfits(engine, version="version:2")
    watch = VersionWatch(engine, SETTINGS)
    await watch.step()
    await join(engine, NEW, "new", 2, queue="letters")
    await engine.membership.leave("new-2-default")

    await watch.step()

    assert await taken(engine, "version:3") == {job_id}


@pytest.mark.parametrize("version", [NO_VERSION, "version:3"])
async def test_jobs_in_a_queue_that_nobody_serves_are_left_alone(engine, version):
    await join(engine, NEW, "new", 2, queue="letters")
    (job_id,) = await misfits(engine, version=version)

    await VersionWatch(engine, replace(SETTINGS, version_wait=1.0)).step()

    record = await engine.inspector.job(job_id)
    assert (record.state, record.lease) == (JobState.WAITING, 1)


async def test_jobs_of_types_that_nobody_knows_at_present_are_left_alone(engine):
    (job_id,) = await misfits(engine)

    await VersionWatch(engine, replace(SETTINGS, version_wait=1.0)).step()

    record = await engine.inspector.job(job_id)
    assert (record.state, record.lease) == (JobState.WAITING, 1)


@pytest.mark.parametrize("delivery", Delivery)
async def test_a_job_that_nobody_took_for_too_long_is_dead_with_both_signatures(engine, delivery):
    await join(engine, OLD, "old", 1)
    (job_id,) = await submit(engine, new_job(args=b'{"a": 1, "b": 2}', delivery=delivery))
    (one,) = await claim(engine, 1)
    long_ago = replace(ERROR, refusals=(Refusal(version="old", since_ms=1),))
    await engine.jobs.settle([settle(one, Misfit(long_ago))])

    await VersionWatch(engine, SETTINGS).step()

    record = await engine.inspector.job(job_id)
    assert record.state is JobState.DEAD
    assert "work(a: integer, b: integer)" in record.reason
    assert "take work(a: any = …)" in record.reason
    assert (record.job.attempt, record.job.losses) == (0, 0)


async def test_only_one_leads_and_gives_it_up_at_its_end(engine):
    first, second = VersionWatch(engine, SETTINGS), VersionWatch(engine, SETTINGS)
    await join(engine, OLD, "old", 1)
    await first.step()
    (job_id,) = await misfits(engine)
    await join(engine, NEW, "new", 2)

    await second.step()
    assert await taken(engine, "version:2") == set()
    await first.stop()

    with runtime.install(Clock(0.1)):
        assert await engine.membership.lead(ROLE, "somebody", 1_000)
    assert (await engine.inspector.job(job_id)).state is JobState.WAITING


async def test_who_has_just_joined_looks_also_where_another_leads(engine):
    await engine.membership.lead(ROLE, "somebody", 20_000)
    (job_id,) = await misfits(engine)
    await join(engine, NEW, "new", 2)
    fleet = Fleet()
    watch = VersionWatch(engine, SETTINGS, fleet)
    await watch.step()
    assert await taken(engine, "", "version:2") == set()

    fleet.joins += 1
    await watch.step()

    assert await taken(engine, "", "version:2") == {job_id}


@pytest.mark.parametrize("delivery", Delivery)
async def test_what_a_vanished_watch_held_is_given_back_uncharged(engine, delivery):
    with runtime.install(Clock(-60.0)):
        (job_id,) = await misfits(engine, delivery=delivery)
        await claim(engine, 1, requirements=(NO_VERSION,), worker=f"{WORKER}gone", lease_ms=1)

    await Rescuer(engine, SETTINGS).step()

    record = await engine.inspector.job(job_id)
    assert (record.state, record.job.losses) == (JobState.WAITING, 0)
    assert await taken(engine, NO_VERSION) == {job_id}
