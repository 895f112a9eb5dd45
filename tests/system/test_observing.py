"""What a worker lets others see: metrics at a port of its own, lines of JSON, minutes kept."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from lamplighter.connect import connect

PATIENCE = 30.0
COMMAND = Path(sys.executable).parent / "lamplighter"

PROGRAM = """
import asyncio
import logging

from lamplighter import App, Context, Retry

app = App("sqlite:///own.db")
log = logging.getLogger("shop.mail")


@app.job
async def greet(name: str) -> None:
    log.info("hello %s", name)
    await asyncio.to_thread(log.warning, "from a thread\\nforged \\x1b[31m")


@app.job(secrets=["card"])
def charge(card: str) -> None:
    log.error("the card is %s", card)


@app.job(isolation="process")
def alone() -> None:
    log.error("by myself")


@app.job(retry=Retry(delays=[0.01]))
def fail() -> None:
    raise ValueError("not today")
"""


class Lines:
    """A worker, and the lines it has written."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self._news = asyncio.Condition()
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for line in self.process.stdout:
            async with self._news:
                self.lines.append(line.decode().rstrip("\n"))
                self._news.notify_all()

    async def has(self, *parts: str) -> str:
        """Wait for a line with all of these."""

        def found() -> list[str]:
            return [line for line in self.lines if all(part in line for part in parts)]

        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(found)
        return found()[0]

    async def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            status = await self.process.wait()
            await self._reader
        return status


@pytest.fixture
async def engine(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/own.db")
    await engine.open()
    yield engine
    await engine.close()


@pytest.fixture
async def worker(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    begun: list[Lines] = []

    async def begin(*options: str) -> Lines:
        process = await asyncio.create_subprocess_exec(
            COMMAND, "worker", "program:app", "--processes", "1", *options,
            cwd=tmp_path,
            env={**os.environ, "LAMPLIGHTER_URL": "sqlite:///own.db"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        begun.append(Lines(process))
        return begun[-1]

    yield begin
    for each in begun:
        if each.process.returncode is None:
            each.process.kill()
        await each.process.wait()


@pytest.fixture
async def serve(tmp_path):
    begun: list[Lines] = []

    async def begin(*options: str) -> Lines:
        process = await asyncio.create_subprocess_exec(
            COMMAND, "serve", "--url", "sqlite:///own.db", "--port", "0", *options,
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        begun.append(Lines(process))
        return begun[-1]

    yield begin
    for each in begun:
        if each.process.returncode is None:
            each.process.kill()
        await each.process.wait()


async def submit(tmp_path: Path, type_: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        COMMAND, "submit", type_, *arguments, "--app", "program:app", "--json",
        cwd=tmp_path,
        env={**os.environ, "LAMPLIGHTER_URL": "sqlite:///own.db"},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    return json.loads(said)["id"]


async def scraped(url: str) -> str:
    host, port = re.fullmatch(r"http://(.*):(\d+)/metrics", url).groups()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    said = (await reader.read()).decode()
    writer.close()
    assert said.startswith("HTTP/1.1 200 OK")
    return said


async def until_scraped(url: str, *series: str) -> str:
    """Scrape until these lines are there: children report four times a second."""
    async with asyncio.timeout(PATIENCE):
        while True:
            text = await scraped(url)
            if all(f"{line}\n" in text for line in series):
                return text
            await asyncio.sleep(0.05)


async def test_a_worker_serves_its_metrics_and_leaves_its_minutes(tmp_path, worker, engine):
    lines = await worker("--metrics-port", "0", "--json")
    url = json.loads(await lines.has("metrics.served"))["url"]
    await submit(tmp_path, "greet", "name=Ada")
    await submit(tmp_path, "fail")

    text = await until_scraped(
        url,
        'lamplighter_jobs_ended_total{type="greet",outcome="succeeded"} 1',
        'lamplighter_jobs_ended_total{type="fail",outcome="failed"} 1',
        'lamplighter_retries_total{type="fail"} 1',
        'lamplighter_start_lag_seconds_count{queue="default"} 3',
        'lamplighter_run_seconds_count{type="greet"} 1',
        "lamplighter_worker_well 1",
    )

    assert 'lamplighter_store_call_seconds_count{verb="settle"}' in text
    assert 'lamplighter_loop_idle_seconds{loop="tally"}' in text
    assert await lines.stop() == 0
    minutes = [minute.tally for minute in await engine.activity.activity(3)]
    assert sum(tally.started for tally in minutes) == 3
    assert sum(tally.succeeded for tally in minutes) == 1
    assert (sum(t.failed for t in minutes), sum(t.retried for t in minutes)) == (1, 1)
    with pytest.raises(OSError):  # noqa: PT011 - whatever the system calls it
        await scraped(url)


async def test_every_line_of_json_names_the_job_it_is_about(tmp_path, worker):
    lines = await worker("--log-format", "json")
    await lines.has("worker.started")
    job_id = await submit(tmp_path, "greet", "name=Ada")
    greeting = json.loads(await lines.has("hello Ada"))
    threaded = json.loads(await lines.has("from a thread"))
    lone_id = await submit(tmp_path, "alone")
    lone = json.loads(await lines.has("by myself"))
    await submit(tmp_path, "charge", "card=4711-0815")
    await lines.has("the card is")
    assert await lines.stop() == 0

    about = {"job_id": job_id, "tenant": "default", "attempt": 1, "type": "greet"}
    assert about.items() <= greeting.items()
    assert about.items() <= threaded.items()
    assert (greeting["level"], greeting["logger"]) == ("info", "shop.mail")
    assert threaded["message"] == "from a thread\nforged \x1b[31m"
    assert (lone["job_id"], lone["queue"]) == (lone_id, "default")
    for line in lines.lines:
        assert {"ts", "level", "logger", "event", "message"} <= json.loads(line).keys()
    assert not any("4711-0815" in line for line in lines.lines)


async def test_lines_for_people_cannot_be_forged_by_what_a_handler_logs(tmp_path, worker):
    lines = await worker()
    await lines.has("serves default")
    job_id = await submit(tmp_path, "greet", "name=Ada")
    line = await lines.has("from a thread")
    assert r"from a thread\nforged \x1b[31m" in line
    assert f"job_id={job_id}" in line
    assert await lines.stop() == 0


async def test_a_service_serves_metrics_on_a_port_of_their_own_without_a_token(tmp_path, serve):
    (tmp_path / "keys").write_text("k" * 40)
    (tmp_path / "keys").chmod(0o600)
    lines = await serve("--metrics-port", "0", "--key-file", "keys", "--json")
    told = json.loads(await lines.has('"metrics"'))
    text = await scraped(told["metrics"])
    assert 'lamplighter_jobs{state="waiting"} 0\n' in text
    assert await lines.stop() == 0


async def test_a_service_writes_lines_of_json(serve):
    lines = await serve("--log-format", "json", "--metrics-port", "0")
    told = json.loads(await lines.has("serving on"))
    said = told.keys() - {"console"}  # where it was built
    assert said == {"ts", "level", "logger", "event", "message", "url", "metrics"}
    assert await lines.stop() == 0
    for line in lines.lines:
        assert {"ts", "level", "logger", "event", "message"} <= json.loads(line).keys()


async def test_several_processes_need_a_port_with_a_name(serve):
    lines = await serve("--processes", "2", "--metrics-port", "0")
    assert await asyncio.wait_for(lines.process.wait(), PATIENCE) == 1
    assert "--metrics-port 9101" in await lines.has("hint")
