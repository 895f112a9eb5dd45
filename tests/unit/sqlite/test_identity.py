"""A file that is not at its path any more is not written, as if it were."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.engines.sqlite import identity
from lamplighter.model.errors import StoreUnreachable
from lamplighter.port.conformance.builders import new_job

if TYPE_CHECKING:
    from pathlib import Path

    from lamplighter.port.store import Engine


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the file with each call, and not only now and then."""
    monkeypatch.setattr(identity, "LOOK_EVERY", 0.0)


async def refused(engine: Engine) -> list[StoreUnreachable]:
    """Write and read, neither of which may work."""
    found: list[StoreUnreachable] = []
    for call in (engine.jobs.submit([new_job()]), engine.inspector.counts()):
        with pytest.raises(StoreUnreachable) as raised:
            await call
        found.append(raised.value)
    return found


@pytest.mark.usefixtures("always")
async def test_a_deleted_file_is_noticed(engine: Engine, path: Path) -> None:
    await engine.jobs.submit([new_job()])
    path.unlink()

    for error in await refused(engine):
        assert f"`{path}` is not there any more" in error.cause
        assert "put it back" in error.hint
        assert error.value == str(path)
    assert not path.exists()


@pytest.mark.usefixtures("always")
async def test_a_moved_file_is_noticed_and_used_again_when_it_is_back(
    engine: Engine, path: Path
) -> None:
    before = new_job()
    await engine.jobs.submit([before])
    path.rename(path.with_suffix(".old"))
    await refused(engine)

    path.with_suffix(".old").rename(path)

    after = new_job()
    await engine.jobs.submit([after])
    assert await engine.inspector.job(before.id)
    assert await engine.inspector.job(after.id)


@pytest.mark.usefixtures("always")
async def test_another_file_in_its_place_is_noticed(engine: Engine, path: Path) -> None:
    old = path.with_suffix(".old")
    path.rename(old)
    shutil.copy(old, path)

    for error in await refused(engine):
        assert "replaced by another file" in error.cause

    other = connect(f"sqlite:///{path}")
    await other.open()
    assert (await other.inspector.counts())["waiting"] == 0
    await other.close()


async def test_no_store_is_made_beside_the_log_of_one_that_was_moved(
    engine: Engine, path: Path
) -> None:
    job = new_job()
    await engine.jobs.submit([job])
    away = path.with_suffix(".old")
    path.rename(away)
    second = connect(f"sqlite:///{path}")
    for call in (second.open, second.migrate):
        with pytest.raises(StoreUnreachable, match="moved or deleted") as refused:
            await call()
        assert f"rm {path}-wal" in refused.value.hint
    assert not path.exists()

    away.rename(path)

    await second.open()
    assert await second.inspector.job(job.id)
    await second.close()


async def test_a_look_is_taken_now_and_then(
    engine: Engine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    file_at = identity._file_at
    monkeypatch.setattr(identity, "_file_at", lambda given: looks.append(given) or file_at(given))
    now = runtime.monotonic() + 10
    monkeypatch.setattr(runtime, "monotonic", lambda: now)

    for _ in range(20):
        await engine.inspector.counts()

    assert looks == [path]


async def test_a_file_that_is_moved_before_a_write_is_acknowledged_is_noticed(
    engine: Engine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "LOOK_EVERY", 60.0)
    await engine.jobs.submit([new_job()])
    path.rename(path.with_suffix(".old"))
    await asyncio.sleep(2 * identity.WRITTEN)

    with pytest.raises(StoreUnreachable, match="not there any more"):
        await engine.jobs.submit([new_job()])

    assert not path.exists()
