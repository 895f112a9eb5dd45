"""The file is ours, of our version, writable and on a local disk — or the error says what to do."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from lamplighter.connect import connect
from lamplighter.engines.sqlite import database, faults
from lamplighter.model.errors import (
    InvalidUrl,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreNewer,
    StoreOlder,
    StoreReadOnly,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from pathlib import Path


def overwrite(path: Path) -> None:
    """Destroy every page but the first."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(1, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)


async def refused(url: str) -> StoreError:
    engine = connect(url)
    with pytest.raises(StoreError) as caught:
        await engine.open()
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///", "sqlite:jobs.db", "sqlite:///:memory:", "sqlite:///a.db?x=1"],
)
def test_a_url_without_a_file_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl, match="does not name a database file"):
        connect(url)


@pytest.mark.parametrize("url", ["", "postgre://db/jobs", "jobs.db", "://"])
def test_an_unknown_engine_is_named_with_the_known_ones(url: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        connect(url)
    assert "sqlite:///" in caught.value.hint


async def test_a_text_file_is_foreign_and_stays_as_it_is(path: Path) -> None:
    path.write_text("dear diary, " * 1000)
    error = await refused(f"sqlite:///{path}")
    assert isinstance(error, StoreForeign)
    assert path.read_text() == "dear diary, " * 1000


async def test_another_programs_database_is_foreign_and_gets_no_tables(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipe (name TEXT)")
    other.close()
    error = await refused(f"sqlite:///{path}")
    assert isinstance(error, StoreForeign)
    check = sqlite3.connect(path)
    assert check.execute("SELECT name FROM sqlite_schema").fetchall() == [("recipe",)]
    check.close()


async def test_a_newer_store_is_refused_and_names_both_versions(path: Path) -> None:
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    error = await refused(f"sqlite:///{path}")
    assert isinstance(error, StoreNewer)
    assert "99" in error.cause


@pytest.mark.parametrize("migrate", [False, True])
async def test_a_store_from_before_the_first_release_is_refused_untouched(
    path: Path, *, migrate: bool
) -> None:
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {database.FIRST - 1}")

    with pytest.raises(StoreOlder, match=f"has version {database.FIRST - 1}") as caught:
        database.prepare(path, lambda: 0, migrate=migrate)

    assert "cannot be migrated" in caught.value.cause
    assert "new store" in caught.value.hint
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (database.FIRST - 1,)


async def test_an_older_store_asks_for_migrate_and_migrate_brings_it_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    newest = database.layouts().newest
    steps = (*database.migrations(), "CREATE TABLE later (x INTEGER);")
    monkeypatch.setattr(database, "migrations", lambda: steps)
    error = await refused(f"sqlite:///{path}")
    assert isinstance(error, StoreOlder)
    assert "lamplighter migrate" in error.hint

    engine = connect(f"sqlite:///{path}")
    assert await engine.migrate() == (newest, newest + 1)
    await engine.open()
    await engine.close()


async def test_a_failing_migration_leaves_nothing_half_done(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ("CREATE TABLE first (x INTEGER);\nCREATE TABLE first (x INTEGER);",)
    monkeypatch.setattr(database, "migrations", lambda: steps)
    await refused(f"sqlite:///{path}")
    check = sqlite3.connect(path)
    assert check.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    check.close()


async def test_a_missing_folder_is_named_with_the_command_that_makes_it(tmp_path: Path) -> None:
    error = await refused(f"sqlite:///{tmp_path}/no/such/jobs.db")
    assert isinstance(error, StoreUnreachable)
    assert "mkdir -p" in error.hint


async def test_a_folder_is_not_a_database(tmp_path: Path) -> None:
    assert isinstance(await refused(f"sqlite:///{tmp_path}"), StoreUnreachable)


async def test_a_folder_one_may_not_write_is_read_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root
    assert isinstance(await refused(f"sqlite:///{path}"), StoreReadOnly)


async def test_a_network_file_system_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "file_system", lambda _: "nfs4")
    error = await refused(f"sqlite:///{path}")
    assert "nfs4" in error.cause


async def test_a_damaged_file_is_told_from_a_foreign_one(path: Path) -> None:
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode = DELETE")
    other.close()
    overwrite(path)
    engine = connect(f"sqlite:///{path}")
    with pytest.raises(StoreDamaged):
        await engine.open()


def test_a_write_to_a_read_only_database_is_explained(path: Path) -> None:
    path.touch()
    database.prepare(path, lambda: 0, migrate=False)
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as caught:
        reader.execute("DELETE FROM job")
    assert isinstance(faults.explain(caught.value, path), StoreReadOnly)
    reader.close()


async def test_an_engine_that_is_not_open_says_so(path: Path) -> None:
    engine = connect(f"sqlite:///{path}")
    with pytest.raises(StoreClosed, match="not open"):
        await engine.inspector.counts()
    await engine.open()
    await engine.close()
    await engine.close()
    with pytest.raises(StoreClosed):
        await engine.inspector.counts()


async def test_two_engines_on_one_file_share_one_store(path: Path) -> None:
    first, second = connect(f"sqlite:///{path}"), connect(f"sqlite:///{path}")
    await first.open()
    await second.open()
    assert await second.inspector.counts() == await first.inspector.counts()
    await first.close()
    await second.close()
