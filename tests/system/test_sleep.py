"""A machine that slept: everything on it stood still for longer than its leases, and goes on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from lamplighter.model.filters import Filter
from lamplighter.model.job import Delivery, JobState

LEASE = 2.0
"""What is left of it after 0.8 leases must be enough for a renewal, also on a busy machine."""


@pytest.fixture
def world(any_world):
    return any_world


def family(pid: int) -> list[int]:
    """The processes of a worker, its own first."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


async def sleep(pids: list[int], seconds: float) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(seconds)


async def running(world) -> dict[str, JobState]:
    jobs = [("wait", b"{}")] * 3 + [("wait_in_thread", b"{}"), ("alone", b'{"what":"wait"}')]
    ids = await world.submit_all(jobs)
    ids += await world.submit_all(jobs, delivery=Delivery.AT_MOST_ONCE)
    for job_id in ids:
        await world.runs.seen(job_id, "start")
    return ids


@pytest.mark.parametrize("leases", [0.8, 1.5, 3.0])
@pytest.mark.parametrize("first", ["supervisor", "children"])
async def test_what_nobody_took_while_a_machine_slept_goes_on(world, first, leases):
    worker = await world.worker(lease=LEASE, slots=8, process_slots=4)
    ids = await running(world)
    pids = family(worker.process.pid)

    await sleep(pids, leases * LEASE)
    for pid in pids if first == "supervisor" else reversed(pids):
        os.kill(pid, signal.SIGCONT)
    # As long as it takes a rescuer, or whoever believes that leases are lost, to do harm.
    await asyncio.sleep(2.5 * LEASE)
    world.runs.release()
    records = [await world.ended(job_id) for job_id in ids]

    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert {record.lease for record in records} == {1}
    assert all(len(world.runs.lines(job_id, "start")) == 1 for job_id in ids)
    assert worker.told_of("job.rescued") == []
    assert worker.told_of("child.died") == []
    assert worker.lone_events[1:] == []


async def test_what_others_took_while_a_machine_slept_is_stopped(world):
    sleeper = await world.worker(lease=LEASE, slots=8, process_slots=4)
    job_id = await world.submit("wait")
    (once,) = await world.submit_all([("wait", b"{}")], delivery=Delivery.AT_MOST_ONCE)
    for one in (job_id, once):
        await world.runs.seen(one, "start")
    pids = family(sleeper.process.pid)
    await world.worker(lease=LEASE)

    await sleep(pids, 0)
    await world.runs.seen(job_id, "start", count=2)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    await world.runs.seen(job_id, "stopped")
    world.runs.release()

    record = await world.ended(job_id)
    assert (record.state, record.lease) == (JobState.SUCCEEDED, 2)
    assert (await world.ended(once)).state is JobState.DEAD
    assert len(world.runs.lines(once, "start")) == 1
    page = await world.engine.inspector.jobs(Filter(statuses=("running",)), limit=10)
    assert page.jobs == []
