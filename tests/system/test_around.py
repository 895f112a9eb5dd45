"""What stands around handlers, seen from outside of a real worker."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from lamplighter.model.job import JobState
from tests.system.conftest import until

PROGRAM = "tests.system.around_program:app"


async def test_a_process_opens_what_is_provided_once_and_closes_it_after_the_last_handler(world):
    worker = await world.worker(PROGRAM)

    first = await world.ended(await world.submit("use"))
    second = await world.ended(await world.submit("use_in_thread"))
    worker.signal(signal.SIGTERM)
    await worker.ended()

    assert (first.result, second.result) == (b"1", b"2")
    assert world.runs.lines("-") == [["-", "db-open"], ["-", "db-closed", "2"]]
    assert world.runs.lines()[-1] == ["-", "db-closed", "2"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("app", "nobody listens on 5432"), ("lonely", "`use_too` wants a Db as `db`")],
)
async def test_a_worker_that_cannot_provide_says_so_and_does_not_start(world, name, said):
    worker = await world.worker(f"tests.system.unprovided_program:{name}", ready=False)

    assert await worker.ended() == 1
    assert said in worker.errors
    assert "hint:" in worker.errors


async def test_middleware_sees_the_outcomes_of_a_workers_jobs(world):
    await world.worker(PROGRAM)

    used, failed = await world.submit("use_in_thread"), await world.submit("fail")
    await world.ended(used)
    await world.ended(failed)

    assert world.runs.lines(used)[0] == [used, "Succeeded"]
    assert world.runs.lines(failed)[0] == [failed, "Failed"]


async def test_hooks_are_told_of_every_end_though_one_of_them_is_broken(world):
    worker = await world.worker(PROGRAM)

    used, failed = await world.submit("use"), await world.submit("fail")
    await world.ended(used)
    await world.ended(failed)
    worker.signal(signal.SIGTERM)
    await worker.ended()

    assert world.runs.lines(used, "succeeded") == [[used, "succeeded", "1"]]
    assert world.runs.lines(failed, "failed") == [[failed, "failed", "1"]] * 2
    assert (await worker.told("service.error", service="hooks"))["job_id"] == used


async def test_a_command_runs_as_a_job(world):
    await world.worker(PROGRAM)

    record = await world.ended(await world.submit("echo", database="shop"))

    assert record.result == b'"{\\"database\\":\\"shop\\"}\\n"'


def processes_of(group: str) -> list[str]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
            if pgrp == group and state != "Z":
                found.append(stat.parent.name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["timeout", "cancel", "drain"])
async def test_a_command_ends_with_all_it_has_started(world, how):
    worker = await world.worker(PROGRAM, grace=0.1)

    job_id = await world.submit("family", timeout=0.5 if how == "timeout" else None)
    group = (await world.runs.seen(job_id, "start"))[2]
    if how == "cancel":
        await world.engine.jobs.cancel([job_id], by="test", reason="")
    elif how == "drain":
        worker.signal(signal.SIGTERM)
        await worker.ended()

    await until(lambda: not processes_of(group))
    if how == "cancel":
        assert (await world.ended(job_id)).state is JobState.CANCELLED
    elif how == "drain":
        record = await world.engine.inspector.job(job_id)
        assert (record.state, record.job.attempt) == (JobState.WAITING, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="the system must tell of deaths")
async def test_a_killed_worker_takes_its_commands_along(world):
    worker = await world.worker(PROGRAM)

    job_id = await world.submit("family")
    shell = (await world.runs.seen(job_id, "start"))[2]
    worker.signal(signal.SIGKILL)

    await until(lambda: shell not in processes_of(shell))
    for pid in processes_of(shell):
        os.kill(int(pid), signal.SIGKILL)
