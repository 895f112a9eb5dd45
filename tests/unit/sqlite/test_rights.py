"""Rights that are taken away and given back while a process has the store open."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lamplighter.connect import connect
from lamplighter.model.errors import StoreError, StoreReadOnly
from lamplighter.port.conformance.builders import new_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOBODY = 65534


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    """A file in a folder of a user for whom rights count: root may write everything."""
    warm = connect(f"sqlite:///{tmp_path}/warm.db")  # that user may not be able to import anything
    await warm.open()
    await warm.jobs.submit([new_job()])
    await warm.inspector.counts()
    await warm.close()
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield folder / "jobs.db"
    if os.getuid() == 0:
        os.seteuid(0)
    shutil.rmtree(folder)


def allow(path: Path, *, write: bool) -> None:
    for file in path.parent.iterdir():
        file.chmod(0o600 if write else 0o400)
    path.parent.chmod(0o700 if write else 0o500)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_process_that_forked_while_it_could_not_write_writes_again(path: Path) -> None:
    engine = connect(f"sqlite:///{path}", deadline=5.0)
    await engine.open()
    await engine.jobs.submit([new_job()])
    allow(path, write=False)
    child = os.fork()  # connections are closed for it, and opened again
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)  # noqa: ASYNC222 - it has ended
    with pytest.raises(StoreReadOnly):
        await engine.jobs.submit([new_job()])
    assert (await engine.inspector.counts())["waiting"] == 1

    allow(path, write=True)

    await engine.jobs.submit([new_job()])
    assert (await engine.inspector.counts())["waiting"] == 2
    await engine.close()


async def test_a_file_that_cannot_be_written_is_not_opened(path: Path) -> None:
    engine = connect(f"sqlite:///{path}", deadline=5.0)
    await engine.open()
    await engine.close()
    allow(path, write=False)

    for call in (engine.open, engine.migrate):
        with pytest.raises(StoreReadOnly):
            await call()
    allow(path, write=True)

    await engine.open()
    await engine.jobs.submit([new_job()])
    await engine.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_fork_beside_a_moved_file_makes_no_empty_one(path: Path) -> None:
    engine = connect(f"sqlite:///{path}", deadline=5.0)
    await engine.open()
    await engine.jobs.submit([new_job()])
    away = path.with_name("away.db")
    path.rename(away)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)  # noqa: ASYNC222 - it has ended
    with pytest.raises(StoreError):
        await engine.jobs.submit([new_job()])
    assert not path.exists()

    away.rename(path)

    await engine.jobs.submit([new_job()])
    assert (await engine.inspector.counts())["waiting"] == 2
    await engine.close()
