"""Places for runs of one kind, and the runs that wait for one."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field

from lamplighter.config import Settings
from lamplighter.worker.run import Run

LEAST_PROCESSES = 4


@dataclass(slots=True)
class Bench:
    """How many may run at once, how many do, and who waits."""

    slots: int
    busy: int = 0
    waiting: deque[Run] = field(default_factory=deque[Run])
    ended: int = 0
    """Handlers that have ended so far; the claimer prefetches by it."""

    @property
    def free(self) -> int:
        """Slots that nobody has."""
        return self.slots - self.busy


def process_slots(settings: Settings) -> int:
    """Jobs that a worker runs alone at once, unless the settings say otherwise."""
    ordinary = max(LEAST_PROCESSES, 2 * (os.cpu_count() or 1))
    return settings.process_slots or min(settings.slots, ordinary)


class Numbers:
    """A child's own count of its claims."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> int:
        """Take so many that follow each other; gives the first."""
        first = self._next
        self._next += count
        return first
