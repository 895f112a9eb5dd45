"""Connections that are closed while the process forks.

SQLite keeps its locks in tables of the process. A forked child inherits the tables but not the
locks: it would believe that it holds what it does not, and write over others. So every connection
is closed before a fork, at the end of its transaction, and opened again by the parent's next use. A
child has to open its own store.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.database import open_connection
from lamplighter.engines.sqlite.identity import Identity
from lamplighter.model.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path


class ForkSafeConnection:
    """One connection, used only inside ``with connection.held() as it``."""

    def __init__(self, path: Path, clock_ms: Callable[[], int], *, writer: bool) -> None:
        self._path = path
        self._clock_ms = clock_ms
        self._writer = writer
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = open_connection(path, clock_ms, writer=writer)
        self._usable = True
        """Not closed, and not inherited by a fork."""
        self._file = Identity(path)
        _every.add(self)

    @contextlib.contextmanager
    def held(self) -> Generator[sqlite3.Connection]:
        """Yield the connection, if its file is still there; a fork waits until it is returned."""
        with self._lock:
            if not self._usable:
                raise StoreClosed(
                    f"the store `{self._path}` was opened before this process was forked",
                    hint="open it again in the child; an App does so by itself",
                )
            self._file.check()
            if self._connection is None:
                self._connection = open_connection(self._path, self._clock_ms, writer=self._writer)
            yield self._connection

    def check(self) -> None:
        """Refuse to acknowledge what was written into a file that is not at its path any more."""
        self._file.check(written=True)

    def drop_all(self) -> None:
        """Let all connections of this process to the file be opened anew by their next use.

        What was opened while the file could not be written stays read-only for ever, and they share
        some of it.
        """
        for one in list(_every):
            if one._path == self._path:  # noqa: SLF001 - of the same class
                one.drop()

    def drop(self) -> None:
        """Open another connection for the next use."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def close(self) -> None:
        """Close for good."""
        _every.discard(self)
        self.drop()
        self._usable = False

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._connection is not None:
            self._connection.close()

    def after_fork_in_parent(self) -> None:
        self._connection = None  # the next use opens it
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._connection, self._usable = None, False
        self._lock = threading.Lock()


_every: weakref.WeakSet[ForkSafeConnection] = weakref.WeakSet()
_forking: list[ForkSafeConnection] = []


def _before() -> None:
    for connection in list(_every):
        connection.before_fork()
        _forking.append(connection)


def _after_in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()


def _after_in_child() -> None:
    while _forking:
        _forking.pop().after_fork_in_child()


os.register_at_fork(
    before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
