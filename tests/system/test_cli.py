"""The command line as people meet it: real processes, started in a folder of their own."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

PATIENCE = 30.0
COMMAND = Path(sys.executable).parent / "lamplighter"

PROGRAM = """
import asyncio
import os
from pathlib import Path

from lamplighter import App, Context

app = App("sqlite:///own.db")


@app.job
async def greet(name: str) -> str:
    return f"Good evening, {name}"


@app.job
async def linger(ctx: Context) -> str:
    Path("lingering").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return "done"
"""


class Process:
    """A command that runs on, and what it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = asyncio.Event()
        self._reader = asyncio.ensure_future(self._read())

    async def printed(self, *parts: str) -> str:
        """Wait for a line that contains all of these."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for line in self.lines:
                    if all(part in line for part in parts):
                        return line
                assert not self._reader.done(), f"ended without {parts}: {self.lines}"
                self._news.clear()
                await self._news.wait()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            await self._reader
            return await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip())
            self._news.set()
        self._news.set()


@pytest.fixture
async def start(tmp_path):
    started: list[Process] = []

    async def start(*arguments: str, **environment: str) -> Process:
        process = await asyncio.create_subprocess_exec(
            COMMAND,
            *arguments,
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        started.append(Process(process))
        return started[-1]

    yield start
    for process in started:
        if process.process.returncode is None:
            process.process.kill()
        await process.ended()


@pytest.fixture
def call(start):
    async def call(*arguments: str) -> str:
        process = await start(*arguments)
        status = await process.ended()
        text = "\n".join(process.lines)
        assert status == 0, text
        return text

    return call


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


async def test_a_worker_runs_what_the_command_line_submits(start, call, program):
    worker = await start("worker", "program:app", "--children", "1", "--verbose")
    await worker.printed("worker", "serves default")

    answer = json.loads(
        await call("submit", "greet", "name=Ada", "--url", "sqlite:///own.db", "--json")
    )

    line = await worker.printed("succeeded", answer["id"])
    assert "greet" in line
    job = json.loads(
        await call("jobs", "show", answer["id"], "--url", "sqlite:///own.db", "--json")
    )
    assert job["result"] == "Good evening, Ada"
    (member,) = json.loads(await call("workers", "--url", "sqlite:///own.db", "--json"))["workers"]
    assert (member["state"], member["pid"]) == ("alive", worker.process.pid)
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.ended() == 0
    assert "no worker has joined" in await call("workers", "--url", "sqlite:///own.db")


async def test_a_worker_lets_running_jobs_finish_before_it_ends(start, call, program):
    url = ("--url", "sqlite:///elsewhere.db")
    worker = await start("worker", "program:app", "--children", "1", "--json", "--verbose", *url)
    job_id = (await call("submit", "linger", "--app", "program:app", *url)).splitlines()[0]
    async with asyncio.timeout(PATIENCE):
        while not (program / "lingering").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)

    worker.process.send_signal(signal.SIGINT)
    (program / "go").touch()

    settled = json.loads(await worker.printed("job.settled", job_id))
    assert settled["state"] == "succeeded"
    assert await worker.ended() == 0
    assert not (program / "own.db").exists()


async def test_output_that_nobody_reads_is_no_trouble(start, call, program):
    await call("migrate", "--url", "sqlite:///own.db")
    script = f"set -o pipefail; {COMMAND} --help | true; {COMMAND} jobs list --url sqlite:///own.db"
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script),
        cwd=program,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        _, errors = await process.communicate()
    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors


async def test_a_program_that_breaks_every_child_ends_the_worker(start, tmp_path):
    (tmp_path / "moody.py").write_text(
        "import sys\n"
        "if 'lamplighter.worker.child' in str(sys.orig_argv):\n"
        "    raise RuntimeError('not in children')\n" + PROGRAM
    )
    worker = await start("worker", "moody:app", "--children", "1")
    assert await worker.ended() == 1
    text = "\n".join(worker.lines)
    assert "error: " in text
    assert "not in children" in text
