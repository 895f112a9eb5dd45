"""Connections that are closed while the process forks.

SQLite keeps its locks in tables of the process. A forked child inherits the tables but not the
locks: it would believe that it holds what it does not, and write over others. So every connection
is closed before a fork, at the end of its transaction, and opened again in the parent. A child has
to open its own store.
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
from lamplighter.model.errors import StoreClosed, StoreError

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
        self._file = Identity(path)
        _every.add(self)

    @contextlib.contextmanager
    def held(self) -> Generator[sqlite3.Connection]:
        """Give the connection, if its file is still there; a fork waits until it is given back."""
        with self._lock:
            if self._connection is None:
                raise StoreClosed(
                    f"the store `{self._path}` was opened before this process was forked",
                    hint="open it again in the child; an App does so by itself",
                )
            self._file.check()
            yield self._connection

    def close(self) -> None:
        """Close for good."""
        _every.discard(self)
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._connection is not None:
            self._connection.close()

    def after_fork_in_parent(self) -> None:
        if self._connection is not None:
            try:
                self._connection = open_connection(self._path, self._clock_ms, writer=self._writer)
            except StoreError:
                self._connection = None  # the next use says so
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._connection = None
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
