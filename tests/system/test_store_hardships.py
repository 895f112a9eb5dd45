"""A worker whose SQLite file cannot be written for a while goes on by itself afterwards."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamplighter import App
from lamplighter.model.errors import StoreFull, StoreUnreachable
from tests.system.conftest import until

COMMAND = Path(sys.executable).parent / "lamplighter"
PATIENCE = 40.0
OUTAGE = 8.0
"""Long enough for every back-off to reach its longest pause."""
POLL, SLACK = 1.0, 1.5

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and change users")
pytestmark = [
    pytest.mark.timeout(150),
    pytest.mark.skipif(sys.platform != "linux", reason="needs a tmpfs and /proc"),
]

PROGRAM = """
from lamplighter import App

app = App()


@app.job
async def add(a: int, b: int) -> int:
    return a + b
"""


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own that is soon full."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    rest = folder / "rest"
    with rest.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    yield
    rest.unlink()


class Command:
    """A command, and what it has printed."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def text(self) -> str:
        return self._output.read_text(errors="replace")

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, PATIENCE)


@pytest.fixture
async def start(tmp_path: Path):
    started: list[Command] = []
    (tmp_path / "program.py").write_text(PROGRAM)

    def start(url: str, *words: str) -> Command:
        output = tmp_path / f"output-{len(started)}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [COMMAND, *words],
                cwd=tmp_path,
                env={**os.environ, "LAMPLIGHTER_URL": url, "LAMPLIGHTER_BEAT": "0.5"},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        started.append(Command(process, output))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.terminate()
        await one.ended()


async def works(app: App) -> float:
    """Run a job; gives how long that took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    handle = await app.submit("add", {"a": 1, "b": 2})
    assert await handle.result(timeout=PATIENCE) == 3
    return clock() - began


async def resumes(app: App, waiting: list[str]) -> None:
    """Wait until all that waited has run and something new runs; within a poll."""
    clock = asyncio.get_running_loop().time
    began = clock()
    await works(app)
    for job_id in waiting:
        assert await app.handle(job_id).result(timeout=PATIENCE) == 3
    assert clock() - began < POLL + SLACK


async def due_soon(app: App) -> list[str]:
    """Submit jobs that fall due while the store cannot be written: claims of them fail."""
    return [(await app.submit("add", {"a": 1, "b": 2}, delay=1.0)).id for _ in range(5)]


@needs_root
async def test_a_full_file_system_stops_work_until_there_is_room_again(tmp_path: Path, start):
    with small_disk(tmp_path / "disk", "4m") as folder:
        url = f"sqlite:///{folder}/jobs.db"
        async with App(url) as app:
            worker = start(url, "worker", "program:app", "--children", "1")
            await works(app)
            waiting = await due_soon(app)
            with full(folder):
                with pytest.raises(StoreFull):
                    await app.submit("add", {"a": 1, "b": 2}, metadata={"much": "x" * 20_000})
                said = start(url, "submit", "add", "a=1", "b=2", "--force")
                assert await said.ended() != 0
                assert "is full" in said.text
                await until(lambda: "is full" in worker.text, PATIENCE)
                await asyncio.sleep(OUTAGE)
            await resumes(app, waiting)
            assert worker.process.poll() is None
        worker.process.terminate()
        assert await worker.ended() == 0, worker.text


async def test_a_moved_file_stops_work_until_it_is_back(tmp_path: Path, start):
    path, away = tmp_path / "jobs.db", tmp_path / "away.db"
    url = f"sqlite:///{path}"
    async with App(url) as app:
        worker = start(url, "worker", "program:app", "--children", "1")
        await works(app)
        waiting = await due_soon(app)
        path.rename(away)
        for words in (("submit", "add", "a=1", "b=2", "--force"), ("migrate",), ("queues",)):
            said = start(url, *words)
            assert await said.ended() != 0, said.text
            assert "there is no" in said.text
        with pytest.raises(StoreUnreachable, match="not there any more"):
            await app.submit("add", {"a": 1, "b": 2})
        await until(lambda: "is not there any more" in worker.text, PATIENCE)
        await asyncio.sleep(OUTAGE)
        assert not path.exists(), "nobody may make an empty one in its place"

        away.rename(path)

        await resumes(app, waiting)
        assert worker.process.poll() is None


@needs_root
async def test_a_command_on_a_read_only_file_system_never_reports_success(tmp_path: Path, start):
    with small_disk(tmp_path / "disk", "4m") as folder:
        url = f"sqlite:///{folder}/jobs.db"
        async with App(url) as app:
            await app.submit("add", {"a": 1, "b": 2})
        remount(folder, "ro")
        for words in (
            ("submit", "add", "a=1", "b=2", "--force"),
            ("migrate",),
            ("doctor",),
            ("jobs", "list"),
        ):
            said = start(url, *words)
            assert await said.ended() != 0, (words, said.text)
            assert "cannot be written" in said.text
        remount(folder, "rw")
        said = start(url, "submit", "add", "a=1", "b=2", "--force")
        assert await said.ended() == 0, said.text


def remount(folder: Path, way: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{way}", folder], check=True)
