"""Workers and services whose output nobody reads, and terminals that stand still."""

import asyncio
import fcntl
import os
import pty
import signal
import socket
import sys
import termios
import urllib.request

import pytest

from lamplighter.model.job import JobState
from tests.system.conftest import ROOT

PAGE = 4096
SPEC = "tests.system.loud_program:app"


class Unread:
    """A process whose stdout and stderr lead into small pipes that nobody reads."""

    def __init__(self, process, pipes) -> None:
        self.process = process
        self.pipes = pipes

    def full(self) -> bool:
        """Tell whether both pipes have been filled, so that a plain write would wait for ever."""
        return all(not _writable(sink) for _, sink in self.pipes)

    async def ended(self, seconds: float) -> int:
        async with asyncio.timeout(seconds):
            return await self.process.wait()

    def read(self) -> bytes:
        """Take what stands in the pipes now."""
        found = b""
        for source, _ in self.pipes:
            os.set_blocking(source, False)
            while True:
                try:
                    found += os.read(source, PAGE)
                except BlockingIOError:
                    break
        return found


def _writable(sink: int) -> bool:
    os.set_blocking(sink, False)
    try:
        os.write(sink, b"x" * PAGE)
    except BlockingIOError:
        return False
    finally:
        os.set_blocking(sink, True)
    return True


@pytest.fixture
async def unread(world):
    started = []

    async def start(*command: str, filled: bool = False) -> Unread:
        pipes = [os.pipe(), os.pipe()]
        for _, sink in pipes:
            fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, PAGE)
            if filled:
                os.write(sink, b"." * PAGE)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "lamplighter",
            *command,
            cwd=ROOT,
            env={**os.environ, "LAMPLIGHTER_URL": world.url},
            stdout=pipes[0][1],
            stderr=pipes[1][1],
        )
        started.append(Unread(process, pipes))
        return started[-1]

    yield start
    for each in started:
        if each.process.returncode is None:
            each.process.kill()
            await each.process.wait()
        for source, sink in each.pipes:
            os.close(source)
            os.close(sink)


@pytest.mark.parametrize("form", ["console", "json"])
@pytest.mark.parametrize("command", ["worker", "dev"])
async def test_jobs_go_on_and_leases_are_kept_though_nobody_reads(world, unread, command, form):
    options = ["-v", "--lease", "2s", "--grace", "5s", "--log-format", form]
    if command == "dev":
        if form == "json":
            pytest.skip("dev has no log format")
        options = ["--no-reload", "--no-serve"]
    worker = await unread(command, SPEC, "--processes", "1", *options)
    patient = await world.submit("patient", seconds=4.0)
    loud = [
        await world.submit(type) for type in ["in_loop", "in_thread", "alone"] for _ in range(20)
    ]

    records = [await world.ended(job_id) for job_id in loud]
    held = await world.ended(patient)
    blocked = worker.full()
    worker.process.send_signal(signal.SIGTERM)

    assert await worker.ended(12.0) == 0
    assert blocked
    assert {record.state for record in records} == {JobState.SUCCEEDED}
    assert {record.lease for record in (*records, held)} == {1}
    assert held.state is JobState.SUCCEEDED


async def test_what_was_dropped_is_told_when_the_pipe_moves_again(world, unread):
    worker = await unread("worker", SPEC, "--processes", "1", "-v")
    for job_id in [await world.submit("in_loop") for _ in range(200)]:
        await world.ended(job_id)
    assert worker.full()

    seen = b""
    async with asyncio.timeout(15.0):
        while b"were dropped" not in seen:
            seen += worker.read()
            await asyncio.sleep(0.01)

    worker.process.send_signal(signal.SIGTERM)
    assert await worker.ended(12.0) == 0


async def test_the_metrics_count_what_was_dropped(world, unread):
    port = _free_port()
    worker = await unread("worker", SPEC, "--processes", "1", "--metrics-port", str(port))
    for job_id in [await world.submit("in_loop") for _ in range(150)]:
        await world.ended(job_id)

    counted = 0.0
    async with asyncio.timeout(10.0):
        while not counted:
            text = await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/metrics")
            (line,) = [
                line
                for line in text.splitlines()
                if line.startswith("lamplighter_output_dropped_lines_total ")
            ]
            counted = float(line.split()[1])
            await asyncio.sleep(0.05)
    worker.process.send_signal(signal.SIGTERM)
    assert await worker.ended(12.0) == 0


@pytest.mark.parametrize("processes", ["1", "2"])
async def test_a_service_begins_and_answers_though_nobody_reads(world, unread, processes):
    port = _free_port()
    service = await unread("serve", "--port", str(port), "--processes", processes, filled=True)

    async with asyncio.timeout(15.0):
        while True:
            try:
                answer = await asyncio.to_thread(_get, f"http://127.0.0.1:{port}/healthz")
                break
            except OSError:
                await asyncio.sleep(0.05)
    service.process.send_signal(signal.SIGTERM)

    assert '"ok"' in answer
    assert await service.ended(12.0) == 0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5.0) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("stopped", [False, True], ids=["unread", "stopped"])
async def test_the_board_of_dev_stands_still_and_the_work_does_not(world, stopped):
    master, slave = pty.openpty()
    dev = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lamplighter",
        "dev",
        SPEC,
        "--no-reload",
        "--no-serve",
        "--processes",
        "1",
        cwd=ROOT,
        env={**os.environ, "LAMPLIGHTER_URL": world.url, "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    try:
        for job_id in [await world.submit("in_loop") for _ in range(20)]:
            await world.ended(job_id)
        if stopped:
            termios.tcflow(slave, termios.TCOOFF)
        # So many pictures as fill any buffer of a terminal.
        await asyncio.sleep(4.0)
        last = await world.ended(await world.submit("in_loop"))
        dev.send_signal(signal.SIGTERM)
        async with asyncio.timeout(15.0):
            status = await dev.wait()
    finally:
        if dev.returncode is None:
            dev.kill()
            await dev.wait()
        os.close(master)
        os.close(slave)
    assert last.state is JobState.SUCCEEDED
    assert status == 0
