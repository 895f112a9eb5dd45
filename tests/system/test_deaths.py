"""Processes that are killed or stand still."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import time

import pytest

from lamplighter.model.job import JobState
from lamplighter.worker.child import CRASHED


async def test_a_killed_childs_jobs_run_again_in_another(world):
    worker = await world.worker(lease=30.0, slots=1)
    job_id = await world.submit("wait")
    first = await world.runs.seen(job_id, "start")

    os.kill(int(first[2]), signal.SIGKILL)
    died = await worker.told("child.died")
    again = await world.runs.seen(job_id, "start", count=2)
    world.runs.release()
    record = await world.ended(job_id)

    assert died["started"] == 1
    assert again[2] != first[2]
    assert record.state is JobState.SUCCEEDED
    assert record.lease == 2
    assert (record.job.attempt, record.job.crashes, record.job.losses) == (0, 0, 0)
    assert record.job.suspect


async def test_what_a_killed_child_had_not_started_is_given_back_uncharged(world):
    worker = await world.worker(lease=30.0, slots=1)
    # Quick jobs first, so that the child claims ahead; then one that keeps its only slot.
    await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    blocker = await world.submit("wait")
    rest = await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    first = await world.runs.seen(blocker, "start")

    os.kill(int(first[2]), signal.SIGKILL)
    await worker.told("child.died")
    world.runs.release()
    records = [await world.ended(job_id) for job_id in rest]

    assert {record.job.losses for record in records} == {0}
    assert all(len(world.runs.lines(job_id)) == 1 for job_id in rest)


async def test_a_killed_workers_jobs_are_rescued_by_another(world):
    lease = 1.0
    first = await world.worker(lease=lease)
    job_id = await world.submit("wait")
    await world.runs.seen(job_id, "start")
    second = await world.worker(lease=lease)

    first.signal(signal.SIGKILL)
    killed = time.monotonic()
    await second.told("job.rescued")
    rescued = time.monotonic()
    await world.runs.seen(job_id, "start", count=2)
    world.runs.release()
    record = await world.ended(job_id)

    assert rescued - killed < lease + 2.0
    assert record.state is JobState.SUCCEEDED
    assert record.lease == 2


async def test_children_die_with_their_supervisor(world):
    worker = await world.worker(children=2)
    await worker.told("child.started", count=2)
    pids = worker.child_pids()

    worker.signal(signal.SIGKILL)
    await worker.ended()

    deadline = time.monotonic() + 5
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] not in {"Z", "X"}
    except OSError:
        return False


@pytest.mark.parametrize("type", ["block_the_loop", "spin"])
async def test_a_handler_that_blocks_its_loop_for_three_leases_runs_once(world, type):
    worker = await world.worker(lease=1.0)
    await world.worker(lease=1.0)

    job_id = await world.submit(type, seconds=3.0)
    record = await world.ended(job_id)

    assert record.state is JobState.SUCCEEDED
    assert record.lease == 1
    assert len(world.runs.lines(job_id, "start")) == 1
    assert [w for w in world.workers if w.told_of("loop.silent")]
    assert worker.told_of("job.rescued") == []


async def test_what_waits_behind_a_blocked_loop_is_run_by_others(world):
    first = await world.worker(lease=30.0, slots=1)
    await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    blocker = await world.submit("block_the_loop", seconds=4.0)
    rest = await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    await world.runs.seen(blocker, "start")
    second = await world.worker(lease=30.0)

    records = [await world.ended(job_id) for job_id in rest]

    assert world.runs.lines(blocker, "end") == []
    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert all(len(world.runs.lines(job_id)) == 1 for job_id in rest)
    assert (await world.ended(blocker)).lease == 1
    await first.told("loop.silent")
    assert second.told_of("lease.lost") == []


async def test_after_a_short_silence_what_waits_is_confirmed_and_run(world):
    await world.worker(lease=30.0, slots=1)
    await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    blocker = await world.submit("block_the_loop", seconds=0.75)
    rest = await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)

    records = [await world.ended(job_id) for job_id in (blocker, *rest)]

    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert all(len(world.runs.lines(job_id)) == 1 for job_id in rest)


async def stop_between_writes(world, pid: int) -> None:
    """Stop a process when it does not hold the store's lock, which others would wait for."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(0.5):
                await world.engine.membership.leave("nobody")
                return
        except TimeoutError:
            os.kill(pid, signal.SIGCONT)


async def test_a_stopped_child_starts_nothing_that_was_taken_from_it(world):
    worker = await world.worker(lease=30.0, slots=1)
    await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    blocker = await world.submit("wait")
    rest = await world.submit_all([("add", b'{"a":1,"b":1}')] * 300)
    pid = int((await world.runs.seen(blocker, "start"))[2])

    await worker.told("job.settled", count=300)
    await stop_between_writes(world, pid)
    await worker.told("loop.silent")
    await world.worker(lease=30.0)
    records = [await world.ended(job_id) for job_id in rest]
    world.runs.release()
    os.kill(pid, signal.SIGCONT)
    waited = await world.ended(blocker)
    after = await world.ended(await world.submit("add", a=1, b=1))

    assert waited.lease == 1
    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert all(len(world.runs.lines(job_id)) == 1 for job_id in rest)
    assert after.state is JobState.SUCCEEDED
    assert len(worker.child_pids()) == 1


async def test_a_handler_is_stopped_before_a_lease_that_cannot_be_renewed_ends(world):
    await world.worker(lease=1.0)
    job_id = await world.submit("wait")
    await world.runs.seen(job_id, "start")
    path = world.url.removeprefix("sqlite:///")

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as intruder:
        intruder.execute("BEGIN IMMEDIATE")
        await world.runs.seen(job_id, "stopped")
        held = await world.engine.inspector.job(job_id)
        intruder.execute("ROLLBACK")
    await world.runs.seen(job_id, "start", count=2)
    world.runs.release()
    record = await world.ended(job_id)

    assert held.lease == 1
    assert held.state is JobState.RUNNING
    assert record.state is JobState.SUCCEEDED
    assert record.lease == 2


async def test_handlers_stop_by_themselves_when_nobody_keeps_their_leases(world):
    worker = await world.worker(lease=1.0)
    job_id = await world.submit("wait")
    first = await world.runs.seen(job_id, "start")
    await world.worker(lease=1.0)

    worker.signal(signal.SIGSTOP)
    stopped = await world.runs.seen(job_id, "stopped")
    again = await world.runs.seen(job_id, "start", count=2)
    worker.signal(signal.SIGCONT)
    world.runs.release()
    record = await world.ended(job_id)

    assert stopped[2] == first[2]
    assert again[2] != first[2]
    assert record.state is JobState.SUCCEEDED
    assert record.lease == 2


async def test_a_child_without_a_pulse_ends_loudly_and_another_takes_over(world):
    worker = await world.worker()
    job_id = await world.submit("cancel_the_pulse")

    died = await worker.told("child.died")
    record = await world.ended(job_id)

    assert died["status"] == CRASHED
    assert "pulse" in (await worker.told("service.error", service="pulse"))["error"]
    assert record.state is JobState.SUCCEEDED
    assert record.lease == 2


async def test_a_child_that_hangs_in_its_import_is_replaced_until_the_worker_gives_up(
    world, monkeypatch
):
    monkeypatch.setenv("START_DEADLINE", "0.5")
    worker = await world.worker("tests.system.slow_program:app", ready=False)

    assert await worker.ended() == 1
    died = worker.told_of("child.died")
    assert len(died) == 3
    assert "did not start within 0.5 s" in died[0]["error"]
    assert "did not start within 0.5 s" in worker.errors
