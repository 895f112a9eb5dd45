"""Valkey or Redis that logs every write and syncs the log each second: see `engines.REDIS`."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

from benchmarks.engines import REDIS, RedisStore


class RedisArena:
    """The server."""

    store = "redis"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = RedisStore(folder)

    def describe(self) -> str:
        program = self._store.server.program
        version = ".".join(map(str, program.version))
        return f"{program.name} {version}, " + ", ".join(f"{k}={v}" for k, v in REDIS.items())

    @contextlib.contextmanager
    def database(self) -> Generator[RedisDatabase]:
        self._store.command("FLUSHALL", "SYNC")
        self._store.command("FUNCTION FLUSH")
        yield RedisDatabase(self._store)

    def close(self) -> None:
        self._store.close()


class RedisDatabase:
    """The whole server, emptied; its statements are Lua."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self.url = store.server.url()
        self.folder = store.folder

    def waiting(self, statement: str) -> int:
        return self._store.command("EVAL", statement, 0)

    def server_cpu_ns(self) -> int:
        return self._store.server_cpu_ns()

    def bytes_used(self) -> int:
        return self._store.bytes_used()

    def rest(self) -> None:
        self._store.rest()

    def close(self) -> None:
        """Nothing to do: the server goes on."""
