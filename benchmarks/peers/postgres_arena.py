"""PostgreSQL, as it sets itself up by default: a commit is on the disk."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.engines import PostgresStore


class PostgresArena:
    """The server."""

    store = "postgres"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = PostgresStore(folder)
        self._names = count(1)

    def describe(self) -> str:
        version = "{}.{}".format(*self._store.server.binaries.version)
        names = ("fsync", "synchronous_commit", "shared_buffers")
        return f"PostgreSQL {version}, " + ", ".join(f"{n}={self._setting(n)}" for n in names)

    def cpu_ns(self) -> int:
        """CPU time of all its processes so far."""
        return self._store.server_cpu_ns()

    @contextlib.contextmanager
    def database(self) -> Generator[PostgresDatabase]:
        name = f"bench_{next(self._names)}"
        self._store.server.create_database(name)
        database = PostgresDatabase(self, name)
        try:
            yield database
        finally:
            database.close()
            with self._store.server.connect() as connection:
                drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
                connection.execute(drop.format(sql.Identifier(name)))

    def url(self, database: str) -> str:
        """Give the address of a database."""
        return self._store.server.url(database)

    def connect(self, database: str) -> psycopg.Connection:
        """Open a connection where each statement commits by itself."""
        return self._store.server.connect(database)

    def close(self) -> None:
        self._store.close()

    def _setting(self, name: str) -> str:
        with self._store.server.connect() as connection:
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
        return str(row[0]) if row else ""


class PostgresDatabase:
    """A database of its own; its statements are SQL."""

    def __init__(self, arena: PostgresArena, name: str) -> None:
        self._arena = arena
        # Always the same one: to start a process of the server is dearer than any question.
        self._connection = arena.connect(name)
        self.url = arena.url(name)
        self.folder = arena.folder

    def waiting(self, statement: str) -> int:
        row = self._connection.execute(statement.encode()).fetchone()
        return row[0] if row else 0

    def server_cpu_ns(self) -> int:
        return self._arena.cpu_ns()

    def bytes_used(self) -> int:
        return self.waiting("SELECT pg_database_size(current_database())")

    def rest(self) -> None:
        """Do what autovacuum and the next checkpoint would do in the middle of a phase."""
        self._connection.execute("VACUUM (ANALYZE)")
        self._connection.execute("CHECKPOINT")

    def close(self) -> None:
        """Let go of it; it is dropped by who made it."""
        self._connection.close()
