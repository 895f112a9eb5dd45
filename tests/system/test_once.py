"""At-most-once jobs and the deaths of those who hold them, with real processes."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from lamplighter.model.filters import Filter
from lamplighter.model.job import Delivery, JobState, Status
from tests.system.conftest import until

ONCE = Delivery.AT_MOST_ONCE
SLOTS = 2
QUICK = [("add", b'{"a":1,"b":1}')] * 300


@pytest.fixture
def world(any_world):
    return any_world


async def with_jobs_ahead(world) -> tuple[list[str], list[str], list[str]]:
    """Let a worker of two slots start two jobs that take their time, and hold others unstarted.

    Gives the quick jobs before, the two, and the quick jobs behind them.
    """
    calls = [*QUICK, *[("wait", b"{}")] * SLOTS, *QUICK]
    ids = await world.submit_all(calls, delivery=ONCE)
    before, long, behind = ids[: len(QUICK)], ids[len(QUICK) : -len(QUICK)], ids[-len(QUICK) :]
    for job_id in long:
        await world.runs.seen(job_id, "start")
    await until(lambda: len(world.runs.lines(None, "run")) == len(before))
    return before, long, behind


async def statuses(world, which: str) -> set[str]:
    page = await world.engine.inspector.jobs(Filter(statuses=(which,)), limit=1_000)
    return {record.job.id for record in page.jobs}


async def settled(world, ids: list[str]) -> set[JobState]:
    return {(await world.ended(job_id)).state for job_id in ids}


@pytest.mark.parametrize("who", ["worker", "child"])
async def test_after_a_kill_what_had_started_is_dead_and_the_rest_runs_once(world, who):
    worker = await world.worker(lease=1.0, slots=SLOTS)
    before, long, behind = await with_jobs_ahead(world)
    claimed = await statuses(world, "claimed")
    assert claimed
    assert claimed <= set(behind)
    # What has ended may not be written yet.
    assert {*long, *claimed} <= await statuses(world, "running")

    if who == "worker":
        worker.signal(signal.SIGKILL)
        await worker.ended()
        await world.worker(lease=1.0, slots=SLOTS)
    else:
        os.kill(int(world.runs.lines(long[0], "start")[0][2]), signal.SIGKILL)
        await worker.told("child.died")
    dead = await settled(world, long)
    world.runs.release()

    assert dead == {JobState.DEAD}
    assert await settled(world, behind) == {JobState.SUCCEEDED}
    assert {(await world.engine.inspector.job(one)).job.losses for one in claimed} == {0}
    for job_id in (*before, *behind):
        assert len(world.runs.lines(job_id)) == 1
    for job_id in long:
        assert len(world.runs.lines(job_id, "start")) == 1
        assert "at most once" in (await world.engine.inspector.job(job_id)).reason


async def test_what_a_silent_child_has_not_started_is_run_by_another(world):
    first = await world.worker(lease=30.0, slots=SLOTS)
    _, long, behind = await with_jobs_ahead(world)
    claimed = await statuses(world, "claimed")
    assert claimed
    pid = int(world.runs.lines(long[0], "start")[0][2])

    os.kill(pid, signal.SIGSTOP)
    try:
        await first.told("loop.silent")
        await world.worker(lease=30.0, slots=SLOTS)
        assert await settled(world, behind) == {JobState.SUCCEEDED}
    finally:
        os.kill(pid, signal.SIGCONT)
    world.runs.release()

    assert await settled(world, long) == {JobState.SUCCEEDED}
    assert all(len(world.runs.lines(job_id, "start")) == 1 for job_id in long)
    assert all(len(world.runs.lines(job_id)) == 1 for job_id in behind)


async def with_one_ahead(world) -> tuple[str, set[str]]:
    """Let a job take the only slot of a worker that holds others; return it and the others.

    How many a worker reads ahead depends on how fast it was just before, so that it may be none on
    a busy machine: then another worker tries.
    """
    for _ in range(6):
        await world.worker(lease=30.0, slots=1, beat=0.2)
        await world.submit_all(QUICK)
        blocker = await world.submit("wait")
        await world.submit_all(QUICK)
        await world.runs.seen(blocker, "start")
        # A heartbeat from before may still name what has started since.
        called = {line[0] for line in world.runs.lines()}
        for _ in range(40):
            claimed = await statuses(world, "claimed")
            if claimed and not claimed & called:
                return blocker, claimed
            await asyncio.sleep(0.05)
    raise AssertionError("no worker has shown what it holds")


async def test_jobs_of_other_types_are_shown_as_claimed_by_the_heartbeat(world):
    blocker, claimed = await with_one_ahead(world)

    assert (await world.engine.inspector.job(blocker)).status is Status.RUNNING
    assert claimed | {blocker} <= await statuses(world, "running")


@pytest.mark.parametrize("number", [13, 99], ids=["kills", "hangs"])
async def test_arguments_that_hurt_whoever_reads_them_end_their_job(world, number):
    worker = await world.worker("tests.system.reading_program:app", lease=1.0, slots=SLOTS)
    bad, good = await world.submit_all(
        [("charge", b'{"order":{"number":%d}}' % one) for one in (number, 1)], delivery=ONCE
    )

    assert (await world.ended(bad)).state is JobState.DEAD
    assert world.runs.lines(bad) == []
    after = await world.submit_all([("charge", b'{"order":{"number":2}}')], delivery=ONCE)
    assert await settled(world, after) == {JobState.SUCCEEDED}
    # Beside the bad one it was marked, and perhaps not called: nobody can tell.
    assert (await world.ended(good)).state in {JobState.SUCCEEDED, JobState.DEAD}
    assert len(worker.told_of("child.died")) == 1


# ── processes that have to start first ───────────────────────────────────────────────────────

STARTING = "tests.system.starting_program:app"


def let_processes_start(world, how: str) -> None:
    Path(f"{world.runs.path}.how").write_text(how)


async def charge_while_its_process_starts(world) -> str:
    (job_id,) = await world.submit_all([("charge", b"{}")], delivery=ONCE)
    await world.runs.seen("-", "starting")
    return job_id


async def test_a_job_is_claimed_and_not_started_while_its_process_starts(world):
    let_processes_start(world, "slowly")
    await world.worker(STARTING)
    job_id = await charge_while_its_process_starts(world)

    assert (await world.engine.inspector.job(job_id)).status is Status.CLAIMED
    world.runs.release()

    assert (await world.ended(job_id)).state is JobState.SUCCEEDED
    assert len(world.runs.lines(job_id)) == 1


@pytest.mark.parametrize("who", ["worker", "child"])
async def test_a_job_whose_process_was_starting_at_a_kill_runs_once(world, who):
    let_processes_start(world, "slowly")
    worker = await world.worker(STARTING, lease=1.0)
    job_id = await charge_while_its_process_starts(world)

    let_processes_start(world, "well")
    if who == "worker":
        worker.signal(signal.SIGKILL)
        await worker.ended()
        await world.worker(STARTING, lease=1.0)
    else:
        (child,) = [fields for name, fields in worker.lone_events if name == "child.started"]
        os.kill(child["pid"], signal.SIGKILL)
    record = await world.ended(job_id)

    assert (record.state, record.reason) == (JobState.SUCCEEDED, None)
    assert (record.job.attempt, record.job.crashes, record.job.losses) == (0, 0, 0)
    assert len(world.runs.lines(job_id)) == 1


@pytest.mark.parametrize("how", ["fails", "dies"])
async def test_a_job_whose_process_starts_at_last_runs_once(world, how):
    let_processes_start(world, how)
    await world.worker(STARTING, speed=10.0)
    job_id = await charge_while_its_process_starts(world)

    await world.runs.seen("-", "starting", 2)
    let_processes_start(world, "well")

    assert (await world.ended(job_id)).state is JobState.SUCCEEDED
    assert len(world.runs.lines(job_id)) == 1


@pytest.mark.parametrize(
    ("how", "starts", "words", "error"),
    [
        ("fails", 5, ("failed 5 of 5 attempts", "the licence has run out"), "ProcessNotStarted"),
        ("dies", 3, ("poison", "3 times", "ended with code 7"), "Abandoned"),
    ],
)
async def test_a_job_whose_process_never_starts_is_dead_in_the_end_and_says_why(
    world, how, starts, words, error
):
    let_processes_start(world, how)
    await world.worker(STARTING, speed=10.0)
    job_id = await charge_while_its_process_starts(world)
    record = await world.ended(job_id)

    assert record.state is JobState.DEAD
    assert len(world.runs.lines("-", "starting")) == starts
    assert world.runs.lines(job_id) == []
    assert all(word in record.reason for word in words)
    assert "its handler was never called" in record.reason
    assert record.error.type == error
