"""Stores for short stories: each fresh, and able to be set back to an earlier state."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.faults.audit import Auditor
from tests.faults.audit.sqlite import SqliteAuditor

FILES = "-"
"""Stands for no server: a file for each store."""
REDIS = "redis"
"""Stands for a Redis server for each store."""


class Scene(Protocol):
    """A store that can be set back to an earlier state while nobody uses it."""

    url: str
    auditor: Auditor

    def save(self) -> None:
        """Keep a copy of it."""
        ...

    def restore(self) -> None:
        """Put the copy in its place."""
        ...

    def close(self) -> None:
        """Give it up."""
        ...


class FileScene:
    """An SQLite file, and perhaps a copy of it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "jobs.db"
        self.url = f"sqlite:///{self._path}"
        self.auditor: Auditor = SqliteAuditor(self._path)

    def save(self) -> None:
        shutil.copy(self._path, self._path.with_suffix(".copy"))

    def restore(self) -> None:
        for leftover in self._path.parent.glob(f"{self._path.name}-*"):
            leftover.unlink()
        shutil.copy(self._path.with_suffix(".copy"), self._path)

    def close(self) -> None:
        """Leave the file where it is."""


class DatabaseScene:
    """A database of its own, and perhaps a copy of it."""

    def __init__(self, server: str, name: str) -> None:
        from tests.faults.audit.postgres import PostgresAuditor
        from tests.servers.stores import with_parts

        self._server = server
        self._name = f"probe_{name}"
        self._do(f"CREATE DATABASE {self._name}")
        self.url = with_parts(server, self._name)
        self._auditor = PostgresAuditor(self.url)
        self.auditor: Auditor = self._auditor

    def save(self) -> None:
        self._auditor.close()
        self._do(f"CREATE DATABASE {self._name}_copy TEMPLATE {self._name}")

    def restore(self) -> None:
        self._auditor.close()
        self._do(f"DROP DATABASE {self._name} WITH (FORCE)")
        self._do(f"CREATE DATABASE {self._name} TEMPLATE {self._name}_copy")

    def close(self) -> None:
        self._auditor.close()
        for name in (self._name, f"{self._name}_copy"):
            self._do(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _do(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.add_notice_handler(lambda _: None)
            connection.execute(statement.encode())


class ServerScene:
    """A Redis server of its own, and perhaps a copy of its data."""

    def __init__(self, folder: Path) -> None:
        from tests.faults.places import RedisPlace

        self._place = RedisPlace(folder)
        self.url = self._place.url
        self.auditor: Auditor = self._place.auditor
        self._data = self._place.server.home / "appendonlydir"
        self._copy = folder / "copy"

    def save(self) -> None:
        self._place.server.stop()
        shutil.copytree(self._data, self._copy)
        self._place.server.run()

    def restore(self) -> None:
        with self._place.auditor.blind():
            self._put_back()

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Let the server have lost everything for a while; then put the copy in its place."""
        place = self._place
        with place.auditor.blind():
            with place.server.client() as client:
                client.flushall()
            yield
            self._put_back()

    def _put_back(self) -> None:
        place = self._place
        place.server.stop()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        place.server.run()
        place.auditor.move(place.server, self.url)

    def close(self) -> None:
        self._place.close()


def scene_of(name: str, folder: Path, server: str) -> Scene:
    """Make a fresh store."""
    place = folder / name
    if server == REDIS:
        return ServerScene(place)
    if server != FILES:
        return DatabaseScene(server, name)
    place.mkdir(parents=True)
    return FileScene(place)
