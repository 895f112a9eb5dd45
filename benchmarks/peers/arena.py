"""One PostgreSQL server for all, and an empty database on it for each measurement."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.engines import PostgresStore


class Arena:
    """The server: as PostgreSQL sets it up by default, so that a commit is on the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = PostgresStore(folder)
        self._names = count(1)

    @property
    def version(self) -> str:
        return "{}.{}".format(*self._store.server.binaries.version)

    def setting(self, name: str) -> str:
        """Ask the server how it is set up."""
        with self._store.server.connect() as connection:
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
        return str(row[0]) if row else ""

    def cpu_ns(self) -> int:
        """CPU time of all its processes so far."""
        return self._store.server_cpu_ns()

    @contextlib.contextmanager
    def database(self) -> Generator[Database]:
        """Give an empty database, the only one that anybody uses meanwhile."""
        name = f"bench_{next(self._names)}"
        self._store.server.create_database(name)
        database = Database(self, name)
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
        """Stop the server."""
        self._store.close()


class Database:
    """A database for one measurement; it can stand where a store of ours is asked for."""

    def __init__(self, arena: Arena, name: str) -> None:
        self._arena = arena
        # Always the same one: to start a process of the server is dearer than any question.
        self._connection = arena.connect(name)
        self.url = arena.url(name)
        self.folder = arena.folder

    def number(self, query: str) -> int:
        """Ask it for a number."""
        row = self._connection.execute(query.encode()).fetchone()
        return row[0] if row else 0

    def server_cpu_ns(self) -> int:
        return self._arena.cpu_ns()

    def bytes_used(self) -> int:
        return self.number("SELECT pg_database_size(current_database())")

    def rest(self) -> None:
        """Do what autovacuum and the next checkpoint would do in the middle of a phase."""
        self._connection.execute("VACUUM (ANALYZE)")
        self._connection.execute("CHECKPOINT")

    def close(self) -> None:
        """Let go of it; it is dropped by who made it."""
        self._connection.close()
