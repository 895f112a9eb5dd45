"""A Redis server that is emptied while a worker, its coordinator and a producer run."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from lamplighter import App
from lamplighter.model.errors import StoreLost, UnknownSchedule
from tests.servers.valkey import Server, any_program, start
from tests.system.conftest import until

COMMAND = Path(sys.executable).parent / "lamplighter"
PATIENCE = 60.0

PROGRAM = """
from lamplighter import App

app = App()


@app.schedule("* * * * * *", id="tick", overlap="allow")
@app.job
async def tick() -> None: ...
"""


class Command:
    """A command and what it has printed so far, both streams together."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.text = ""
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(1 << 16):
            self.text += data.decode(errors="replace")

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            await self._reader
            return await self.process.wait()


@pytest.fixture
def server(tmp_path: Path):
    with start(any_program(), tmp_path) as running:
        yield running


@pytest.fixture
async def command(tmp_path: Path, server: Server):
    (tmp_path / "program.py").write_text(PROGRAM)
    started: list[Command] = []

    async def run(*words: str, url: str = "") -> Command:
        process = await asyncio.create_subprocess_exec(
            COMMAND,
            *words,
            cwd=tmp_path,
            env={
                **os.environ,
                "LAMPLIGHTER_URL": url or server.url(),
                "LAMPLIGHTER_BEAT": "0.5",
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        started.append(Command(process))
        return started[-1]

    yield run
    for one in started:
        if one.process.returncode is None:
            one.process.terminate()
        await one.ended()


def flush(server: Server) -> None:
    with server.client() as client:
        client.flushall()


def empty_disk(server: Server) -> None:
    server.stop()
    shutil.rmtree(server.home / "appendonlydir")
    server.restart()


async def succeeded(app: App) -> int:
    try:
        runs = await app.schedules.runs("tick", limit=100)
    except UnknownSchedule:
        return 0
    return sum(run.state.value == "succeeded" for run in runs)


async def runs_again(app: App, than: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await succeeded(app) <= than:  # noqa: ASYNC110 - another process runs them
            await asyncio.sleep(0.1)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("lose", [flush, empty_disk])
async def test_processes_refuse_report_and_resume_when_the_store_is_made_anew(
    server: Server, command, lose
):
    worker = await command("worker", "program:app", "--children", "1")
    async with App(server.url()) as app:
        await until(lambda: "serves default" in worker.text, PATIENCE)
        await runs_again(app, 0)

        lose(server)

        with pytest.raises(StoreLost, match="is gone"):
            await app.submit("tick", {})
        await until(lambda: "is gone" in worker.text, PATIENCE)
        refused = await command("queues")
        assert await refused.ended() != 0, (refused.text, worker.text)
        with server.client() as client:
            assert client.dbsize() == 0, "nothing is written into what is no store"
        assert worker.process.returncode is None

        made = await command("migrate")
        assert await made.ended() == 0, made.text
        handle = await app.submit("tick", {})
        assert await handle.result(timeout=PATIENCE) is None
        await runs_again(app, 1)
    listed = await command("schedules", "--json")
    assert await listed.ended() == 0
    assert [one["id"] for one in json.loads(listed.text)["schedules"]] == ["tick"]


@pytest.mark.timeout(150)
@pytest.mark.parametrize("shards", ["1", "4"])
async def test_where_it_is_declared_the_store_is_made_anew_and_schedules_come_back(
    server: Server, command, shards
):
    url = server.url(on_data_loss="recreate", shards=shards)
    worker = await command("worker", "program:app", "--children", "1", url=url)
    async with App(url) as app:
        await until(lambda: "serves default" in worker.text, PATIENCE)
        await runs_again(app, 0)

        flush(server)

        handle = await app.submit("tick", {})
        assert await handle.result(timeout=PATIENCE) is None
        await runs_again(app, 1)
        assert worker.process.returncode is None
