"""One file, one name: a second one is refused, whatever process or container has the first."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from lamplighter.connect import connect
from lamplighter.engines.sqlite import registration
from lamplighter.engines.sqlite.registration import Registration
from lamplighter.model.errors import StoreAliased
from lamplighter.port.checkup import Grade
from lamplighter.port.conformance.builders import new_job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lamplighter.port.store import Engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs locks of open files")

USER = """
import asyncio, os, sys
from lamplighter.connect import connect

async def main():
    engine = connect(sys.argv[1])
    await engine.open()
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    if sys.argv[2] == "crash":
        os._exit(1)
    await engine.close()

asyncio.run(main())
"""


CRASH = """
import asyncio, os, sys
from lamplighter.connect import connect
from lamplighter.port.conformance.builders import new_job

async def main():
    engine = connect("sqlite:///" + sys.argv[1])
    await engine.open()
    print((await engine.jobs.submit([new_job()]))[0].id, flush=True)
    os._exit(0)

asyncio.run(main())
"""


@contextmanager
def user(path: Path, ends: str = "well") -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has the store open."""
    with subprocess.Popen(
        [sys.executable, "-c", USER, f"sqlite:///{path}", ends],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.communicate("end\n")


async def opened(path: Path) -> Engine:
    engine = connect(f"sqlite:///{path}", deadline=5.0)
    await engine.open()
    return engine


async def refused(path: Path) -> None:
    with pytest.raises(StoreAliased) as raised:
        await opened(path)
    assert str(path) in raised.value.cause
    assert "folder" in raised.value.hint


async def test_a_hard_link_in_use_elsewhere_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    path, link = tmp_path / "jobs.db", tmp_path / "link.db"
    await (await opened(path)).close()
    os.link(path, link)
    with user(path):
        await refused(link)
        with pytest.raises(StoreAliased):
            await connect(f"sqlite:///{link}").migrate()
        assert not (tmp_path / "link.db-wal").exists()
        # The rightful name goes on to be usable beside it.
        engine = await opened(path)
        await engine.jobs.submit([new_job()])
        await engine.close()


async def test_a_hard_link_is_refused_within_one_process(engine: Engine, path: Path) -> None:
    link = path.with_name("link.db")
    os.link(path, link)

    await refused(link)

    await engine.jobs.submit([new_job()])


async def test_doctor_says_so(engine: Engine, path: Path) -> None:
    link = path.with_name("link.db")
    os.link(path, link)

    found = await connect(f"sqlite:///{link}").check_up()

    (schema,) = [one for one in found.findings if one.check == "schema"]
    assert schema.grade is Grade.PROBLEM
    assert "another name" in schema.text


async def test_a_crash_leaves_no_registration(tmp_path: Path) -> None:
    path, link = tmp_path / "jobs.db", tmp_path / "link.db"
    with user(path, "crash"):
        os.link(path, link)

    await (await opened(path)).close()
    # Nobody has it open, and its log is gone: any name will do, when it is the only one.
    path.unlink()
    await (await opened(link)).close()


async def test_a_hard_link_does_not_hide_the_log_that_a_crash_has_left(tmp_path: Path) -> None:
    path, link = tmp_path / "jobs.db", tmp_path / "link.db"
    crash = [sys.executable, "-c", CRASH, path]
    job_id = (await asyncio.to_thread(subprocess.check_output, crash, text=True)).strip()
    assert path.with_name("jobs.db-wal").stat().st_size
    os.link(path, link)

    await refused(link)
    with pytest.raises(StoreAliased):
        await connect(f"sqlite:///{link}").migrate()

    engine = await opened(path)
    assert await engine.inspector.job(job_id)
    await engine.close()


async def test_a_file_that_nobody_uses_can_be_renamed(tmp_path: Path) -> None:
    path, other = tmp_path / "jobs.db", tmp_path / "other.db"
    engine = await opened(path)
    job = new_job()
    await engine.jobs.submit([job])
    await engine.close()

    path.rename(other)

    engine = await opened(other)
    assert await engine.inspector.job(job.id)
    await engine.close()


async def test_a_symbolic_link_is_the_same_name(engine: Engine, path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)

    second = await opened(link)
    job = new_job()
    await second.jobs.submit([job])

    assert await engine.inspector.job(job.id)
    await second.close()
    assert not path.with_name("link.db-write").exists()


@contextmanager
def bound(source: Path, target: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", source, target], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", target], check=True)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


@needs_root
async def test_a_file_mounted_elsewhere_under_the_same_name_is_refused(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with user(here / "jobs.db"):
        (there / "jobs.db").touch()
        with bound(here / "jobs.db", there / "jobs.db"):
            await refused(there / "jobs.db")


@needs_root
async def test_a_file_that_is_mounted_alone_is_refused_though_nobody_else_uses_it(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "the re"
    here.mkdir()
    there.mkdir()
    await (await opened(here / "jobs.db")).close()
    (there / "jobs.db").touch()
    with bound(here / "jobs.db", there / "jobs.db"):
        await refused(there / "jobs.db")
        assert not (there / "jobs.db-wal").exists()
    await (await opened(here / "jobs.db")).close()


@needs_root
async def test_a_folder_mounted_elsewhere_is_one_place(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with user(here / "jobs.db"), bound(here, there):
        engine = await opened(there / "jobs.db")
        await engine.jobs.submit([new_job()])
        await engine.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_keeps_no_registration_and_takes_none_away(path: Path) -> None:
    link = path.with_name("link.db")
    first = Registration(path, create=True)
    os.link(path, link)
    child = os.fork()
    if child == 0:
        first.release()
        os._exit(0 if registration._files == {} else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with pytest.raises(StoreAliased):
        Registration(link, create=False)
    with pytest.raises(AssertionError), user(link):
        pass
    first.release()
    path.unlink()
    Registration(link, create=False).release()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
async def test_a_system_without_such_locks_is_not_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unknown(*_: object) -> bytes:
        raise OSError(number, "no such lock")

    monkeypatch.setattr(fcntl, "fcntl", unknown)

    with Registration(path, create=True):
        assert path.exists()
