"""One server for all queues of a store, and an empty database on it for each measurement."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Database(Protocol):
    """A database for one measurement; it can stand where a store of ours is asked for."""

    url: str
    folder: Path

    def waiting(self, statement: str) -> int:
        """Count the jobs that have not ended, by a statement of the queue's adapter."""
        ...

    def server_cpu_ns(self) -> int: ...
    def bytes_used(self) -> int: ...

    def rest(self) -> None:
        """Do what the server would do by itself in the middle of a phase."""
        ...

    def close(self) -> None: ...


class Arena(Protocol):
    """The server."""

    store: str
    folder: Path

    def describe(self) -> str:
        """Say what it is and how it is set up."""
        ...

    def database(self) -> AbstractContextManager[Database]:
        """Give an empty database, the only one that anybody uses meanwhile."""
        ...

    def close(self) -> None:
        """Stop the server."""
        ...
