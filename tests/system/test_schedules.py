"""Schedules, fired by workers that are processes of their own."""

import signal

import pytest

from lamplighter import App
from lamplighter.port.schedules import RunState
from tests.system.conftest import until


@pytest.fixture
async def schedules(world):
    async with App(world.url) as app:
        yield app.schedules


async def put(world, schedules, name: str, calendar: str) -> None:
    async with App(world.url) as app:
        call = await app.call("add", {"a": 1, "b": 2})
    await schedules.put(name, calendar, call, overlap="allow")


async def test_a_worker_fires_a_schedule_and_runs_its_job(world, schedules):
    worker = await world.worker()
    await put(world, schedules, "tick", "* * * * * *")

    await worker.told("schedules.fired")
    settled = await worker.told("job.settled", type="add")

    assert settled["state"] == "succeeded"
    runs = await schedules.runs("tick")
    assert settled["job_id"] in {run.job_id for run in runs if run.state is RunState.SUCCEEDED}


async def test_a_worker_that_comes_to_its_end_fires_until_its_last_job_has_ended(world, schedules):
    worker = await world.worker(grace=20.0)
    job_id = await world.submit("wait")
    await world.runs.seen(job_id, "start")
    worker.signal(signal.SIGTERM)
    await put(world, schedules, "tick", "* * * * * *")

    await until(lambda: len(worker.told_of("schedules.fired")) >= 3)
    assert worker.process.returncode is None
    world.runs.release()
    assert await worker.ended() == 0

    latest, *_ = await schedules.runs("tick")
    assert latest.state is RunState.STARTED, "its job is for others"
    assert worker.told_of("job.settled")[-1]["job_id"] == job_id
