"""Notes when processes die in which handlers ran: of some, nobody else tells."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.faults.history import Journal, Tail
from tests.faults.processes import Found

INTERVAL = 0.05
"""Seconds between two looks; a death is noted so much too late at most, never too early."""


class Census(threading.Thread):
    """Watches every process that has reported a run, until it is gone."""

    def __init__(self, path: Path) -> None:
        super().__init__(name="census", daemon=True)
        self._tail = Tail(path)
        self._journal = Journal(path)
        self._watched: set[Found] = set()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(INTERVAL):
            self._look()

    def end(self) -> None:
        """Look a last time."""
        self._over.set()
        self.join()
        self._look()
        self._journal.close()

    def _look(self) -> None:
        for line in self._tail.news():
            if line["kind"] == "run_started":
                self._watched.add(Found(line["pid"], line["born"]))
        for gone in [one for one in self._watched if not one.alive()]:
            self._watched.discard(gone)
            self._journal.write("died", pid=gone.pid)
