"""How to get a fresh, empty store of an engine, and what only its owner can tell about it.

A new engine is one class here and one line in ENGINES; no measurement names an engine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from benchmarks import cpu
from benchmarks.errors import BenchmarkError
from tests.faults.processes import tree_of
from tests.servers import postgres, valkey

REDIS = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}
"""How a Redis server is set up, ours and the peers'; else by its own defaults, without dumps."""

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_REST_SECONDS = 120.0


class Store(Protocol):
    """A store that belongs to one measurement."""

    url: str
    folder: Path
    """A folder on the disk the store writes to."""

    def server_cpu_ns(self) -> int:
        """CPU time the store's own server processes have used so far."""
        ...

    def bytes_used(self) -> int:
        """What the store's data takes now, on disk or in memory, nothing of it in transit."""
        ...

    def rest(self) -> None:
        """Finish work put off by earlier writes, so that the next phase does not pay for it."""
        ...

    def close(self) -> None:
        """Remove everything."""
        ...


class SqliteStore:
    """A file in a folder of its own. It has no server: the engine runs inside our processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "jobs.db"
        self.url = f"sqlite:///{self._path}"

    def server_cpu_ns(self) -> int:
        return 0

    def bytes_used(self) -> int:
        self._checkpoint("TRUNCATE")
        parts = (self._path, Path(f"{self._path}-wal"))
        return sum(part.stat().st_size for part in parts if part.exists())

    def rest(self) -> None:
        self._checkpoint("PASSIVE")

    def close(self) -> None:
        """Nothing to do: the folder is removed by who made it."""

    def _checkpoint(self, mode: str) -> None:
        with contextlib.closing(sqlite3.connect(self._path, timeout=10)) as connection:
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()


class PostgresStore:
    """A server of its own with the defaults of PostgreSQL: a commit is on the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = contextlib.ExitStack()
        self.server: postgres.Server = self._open.enter_context(
            # The small cache that tests are content with is not the default.
            postgres.start(postgres.newest_server(), folder, settings={"shared_buffers": "128MB"})
        )
        self.url = self.server.url()

    def server_cpu_ns(self) -> int:
        return family_ns(self.server.pid)

    def bytes_used(self) -> int:
        return self._number("SELECT pg_database_size(current_database())")

    def rest(self) -> None:
        """Do what autovacuum would begin to do within the next minute."""
        with self.server.connect() as connection:
            connection.execute("VACUUM (ANALYZE)")

    def close(self) -> None:
        self._open.close()

    def _number(self, query: str) -> int:
        with self.server.connect() as connection:
            row = connection.execute(query).fetchone()
        return row[0] if row else 0


class RedisStore:
    """A server of its own that logs every write and syncs the log each second, on a real disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = contextlib.ExitStack()
        self.server: valkey.Server = self._open.enter_context(
            valkey.start(valkey.any_program(), folder, settings={"dir": str(folder), **REDIS})
        )
        self.url = self.server.url()
        self._client = self._open.enter_context(self.server.client())

    def server_cpu_ns(self) -> int:
        return family_ns(self.server.pid)

    def bytes_used(self) -> int:
        return int(self.info("memory")["used_memory"])

    def rest(self) -> None:
        """Wait until no process of its own writes the log anew, and nothing waits to be freed."""
        deadline = time.monotonic() + _REST_SECONDS
        while self._is_at_work():
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{self.server} is not at rest after {_REST_SECONDS:g} s")
            time.sleep(0.01)

    def info(self, section: str) -> dict[str, Any]:
        """Ask the server about itself."""
        return self.command("INFO", section)

    def command(self, *words: str | int) -> Any:
        """Let the server do something."""
        # It has no types.
        return cast("Any", self._client.execute_command(*words))  # pyright: ignore[reportUnknownMemberType]

    def close(self) -> None:
        self._open.close()

    def _is_at_work(self) -> bool:
        saving, memory = self.info("persistence"), self.info("memory")
        return bool(
            saving["aof_rewrite_in_progress"]
            or saving["aof_rewrite_scheduled"]
            or saving["rdb_bgsave_in_progress"]
            or memory["lazyfree_pending_objects"]
        )


def family_ns(first: int) -> int:
    """CPU time of a server so far: of all its processes, those that have ended included."""
    spent = cpu.process_ns(first) + cpu.waited_ns(first)
    for process in tree_of(first):
        with contextlib.suppress(BenchmarkError):
            spent += cpu.process_ns(process.pid)
    return spent


ENGINES: Mapping[str, Callable[[Path], Store]] = {
    "postgres": PostgresStore,
    "redis": RedisStore,
    "sqlite": SqliteStore,
}


@contextlib.contextmanager
def fresh_store(engine: str, under: Path) -> Generator[Store]:
    """Give an empty store for the time of a ``with`` block."""
    with _folder(engine, under) as folder, contextlib.closing(ENGINES[engine](folder)) as store:
        yield store


@contextlib.contextmanager
def fresh_redis(under: Path, **options: str) -> Generator[RedisStore]:
    """Give an empty Redis store whose server can be asked; ``options`` go into its address."""
    with _folder("redis", under) as folder, contextlib.closing(RedisStore(folder)) as store:
        store.url = store.server.url(0, **options)
        yield store


@contextlib.contextmanager
def _folder(name: str, under: Path) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=under))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def working_folder(wanted: str | None) -> Generator[Path]:
    """Give a folder on a real disk: a store in memory would not have to wait for any write."""
    place = Path(wanted or tempfile.gettempdir())
    if wanted is None and _file_system(place) in _IN_MEMORY:
        place = Path.cwd() / "build"
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="lamplighter-bench-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def gauge_folder(under: Path) -> Generator[Path]:
    """Give a folder for what handlers note: in memory if there is one, to leave the disk alone."""
    shared = Path("/dev/shm")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    folder = Path(tempfile.mkdtemp(prefix="lamplighter-gauges-", dir=shared if usable else under))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _file_system(folder: Path) -> str:
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    where = folder.resolve()
    mounts = {Path(line.split(" ")[1].replace("\\040", " ")): line.split(" ")[2] for line in lines}
    found = [mount for mount in mounts if where.is_relative_to(mount)]
    return mounts[max(found, key=lambda mount: len(mount.parts))] if found else ""
