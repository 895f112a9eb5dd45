"""Moves the write-ahead log into the file, beside the writer."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.forks import ForkSafeConnection
from lamplighter.model.errors import StoreError
from lamplighter.observability import events

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("lamplighter.sqlite")

CHECKPOINT_BYTES = 16 * 1024 * 1024
LARGE_BYTES = 24 * 1024 * 1024
"""From here on the writer finishes a checkpoint even if that makes its caller wait."""
ALARM_BYTES = 64 * 1024 * 1024
"""A log of this size is told: a reader that never ends keeps it from starting over."""


class Checkpointer:
    """A thread and a connection of their own.

    A checkpoint inside a commit would make that one caller wait for several syncs of the file.
    """

    def __init__(self, path: Path, clock_ms: Callable[[], int]) -> None:
        self._log = Path(f"{path}-wal")
        self._connection = ForkSafeConnection(path, clock_ms, writer=True)
        self._wanted = threading.Event()
        self._told = ALARM_BYTES
        self.finish = False
        """Set when the bulk is moved: a busy writer moves the rest while it is alone.

        At rest nobody has to: the checkpoint was complete, and the next writer starts over.
        """
        self.large = False
        self._closed = False
        self._thread = threading.Thread(
            target=self._serve, name="lamplighter-checkpoint", daemon=True
        )
        self._thread.start()

    def look(self) -> None:
        """Ask for a checkpoint if the log has grown; tell when it has grown too far."""
        with contextlib.suppress(OSError):
            size = self._log.stat().st_size
            self.large = size > LARGE_BYTES
            if size > CHECKPOINT_BYTES:
                self._wanted.set()
            if size < ALARM_BYTES:
                self._told = ALARM_BYTES
            elif size >= self._told:
                self._told = 2 * size
                events.emit(events.STORE_LOG_LARGE, path=str(self._log), bytes=size)

    def finish_with(self, connection: sqlite3.Connection) -> None:
        """Move what is left, called by the writer behind the turnstile; never raises.

        What the callers asked for is committed already: a failure here is not theirs.
        """
        self.finish = False
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error:
            log.warning("checkpoint failed", exc_info=True)

    def close(self) -> None:
        """End the thread and close the connection."""
        self._closed = True
        self._wanted.set()
        self._thread.join()
        self._connection.close()

    def _serve(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                return
            try:
                with self._connection.held() as connection:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self.finish = True
            except (sqlite3.Error, StoreError):
                log.warning("checkpoint failed", exc_info=True)
