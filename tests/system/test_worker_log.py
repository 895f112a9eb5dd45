"""What `lamplighter worker` says by itself: where its store is, what failed, what it waits for."""

import asyncio
import json
import os
import signal
import sys

import pytest

from lamplighter.model.filters import Filter
from lamplighter.model.job import JobState, NewJob
from tests.system.conftest import ROOT, until

SPEC = "tests.system.logged_program:app"


class Talking:
    """A worker process and all its lines so far."""

    def __init__(self, process) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            asyncio.ensure_future(self._read(process.stdout, self.out)),
            asyncio.ensure_future(self._read(process.stderr, self.err)),
        ]

    async def said(self, words: str, where: list[str] | None = None) -> str:
        lines = self.err if where is None else where
        try:
            await until(lambda: any(words in line for line in lines))
        except TimeoutError:
            raise AssertionError(f"{words!r} was not said: {self.out} {self.err}") from None
        return next(line for line in lines if words in line)

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20.0):
            assert await self.process.wait() == 0
            await asyncio.gather(*self._readers)

    async def _read(self, stream, lines: list[str]) -> None:
        while line := await stream.readline():
            lines.append(line.decode().rstrip("\n"))


@pytest.fixture
async def talking(world):
    started = []

    async def start(*options: str, url: str = world.url) -> Talking:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lamplighter",
            "worker",
            SPEC,
            "--processes",
            "1",
            *options,
            cwd=ROOT,
            env={**os.environ, "LAMPLIGHTER_URL": url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        started.append(Talking(process))
        await started[-1].said("serves", started[-1].out)
        return started[-1]

    yield start
    for each in started:
        if each.process.returncode is None:
            await each.end()


async def test_a_failed_attempt_is_logged_with_all_that_is_needed_to_find_it(world, talking):
    worker = await talking()
    job_id = await world.submit("charge", card="4111-2222-3333", order="o-1")
    await world.ended(job_id)
    await worker.said("is dead")
    await worker.end()

    first = next(line for line in worker.err if "failed" in line)
    for word in ("charge", job_id, "tenant default", "attempt 1", "ValueError", "for o-1"):
        assert word in first
    assert "WARNING" in first
    dead = next(line for line in worker.err if "is dead" in line)
    assert "ERROR" in dead
    assert "attempt 2" in dead
    text = "\n".join(worker.err + worker.out)
    assert "Traceback" in text
    assert "logged_program.py" in text
    assert "4111" not in text


async def test_a_failure_is_logged_as_json(world, talking):
    worker = await talking("--log-format", "json")
    job_id = await world.submit("charge", card="4111-2222-3333", order="o-1")
    await world.ended(job_id)
    await worker.said("job.dead")
    await worker.end()

    failed, dead = (
        json.loads(line) for line in worker.err if "job.failed" in line or "job.dead" in line
    )
    assert failed["event"] == "job.failed"
    assert failed["level"] == "warning"
    assert (failed["job_id"], failed["type"], failed["tenant"]) == (job_id, "charge", "default")
    assert (failed["attempt"], dead["attempt"]) == (1, 2)
    assert failed["error"].startswith("ValueError: ")
    assert "o-1" in failed["error"]
    assert failed["fingerprint"] == dead["fingerprint"] != ""
    assert "Traceback" in failed["exception"]
    assert (dead["event"], dead["level"], dead["state"]) == ("job.dead", "error", "dead")
    assert "4111" not in "\n".join(worker.err)


async def test_other_ends_are_logged_too(world, talking):
    worker = await talking()
    ids = [await world.submit(type) for type in ("refuse", "crash", "slow")]
    for job_id in ids:
        assert (await world.ended(job_id)).state is JobState.DEAD
    lines = [await worker.said(job_id) for job_id in ids]
    await worker.end()

    assert "no such\\x1b[31m customer" in lines[0]
    assert "ended with code 3" in lines[1]
    assert "timeout of 0.2 s" in lines[2]


async def test_a_job_whose_process_died_is_logged(world, talking):
    worker = await talking()
    job_id = await world.submit("die")
    said = await worker.said("abandoned")

    assert "WARNING" in said
    assert f"die {job_id}" in said
    assert "the process that ran it beside others died" in said
    assert "runs again in 0 s" in said


async def test_one_cause_does_not_flood_the_log(world, talking):
    worker = await talking()
    for job_id in [await world.submit("fall", number=number) for number in range(60)]:
        await world.ended(job_id)
    await worker.said("is dead")
    await worker.end()

    logged = [line for line in worker.err if "is dead" in line]
    assert len(logged) == 5
    (more,) = [line for line in worker.err if "more like it" in line]
    assert "55 more" in more
    assert "fall" in more


async def test_a_quiet_worker_says_nothing_of_jobs_that_handlers_submit(world, talking):
    worker = await talking()
    await world.ended(await world.submit("submits", count=5))
    page = await world.engine.inspector.jobs(Filter(types=("nothing",)), limit=10)
    assert len([await world.ended(record.job.id) for record in page.jobs]) == 5
    await worker.end()

    lines = worker.out + worker.err
    assert [line for line in lines if "submitted" in line or "nothing" in line] == []


async def test_a_worker_names_its_store_by_the_whole_path(world, talking, tmp_path):
    relative = os.path.relpath(tmp_path, ROOT)
    worker = await talking(url=f"sqlite:///{relative}/jobs.db")
    assert f"on sqlite:///{tmp_path.resolve()}/jobs.db" in await worker.said("serves", worker.out)


async def test_a_worker_warns_of_queues_and_types_that_nobody_serves(world, talking):
    elsewhere = NewJob(id=world.new_id(), type="fall", queue="mail", args=b'{"number": 1}')
    await world.engine.jobs.submit([elsewhere])
    await world.submit("refund")
    worker = await talking("--queues", "default,default2")

    named = await worker.said("--queues names `default2`", worker.out)
    unserved = await worker.said("no live worker serves", worker.out)
    unknown = await worker.said("no live worker knows", worker.out)

    assert "did you mean `default`?" in named
    assert "`mail`, where jobs wait: start a worker with `--queues`" in unserved
    assert "`refund`, of which jobs are due: start a worker whose program has" in unknown
    assert all("warning" in line for line in (named, unserved, unknown))


async def test_a_worker_says_what_it_waits_for(world, talking, tmp_path):
    worker = await talking("--grace", "20s")
    job_id = await world.submit("wait", path=f"{tmp_path}/begun")
    await until((tmp_path / "begun").exists)
    worker.process.send_signal(signal.SIGTERM)
    said = await worker.said("stopping", worker.out)
    await worker.end()

    assert f"wait {job_id}" in said
    assert "1 job" in said
    assert "20 s" in said
    assert (await world.engine.inspector.job(job_id)).state is JobState.SUCCEEDED
