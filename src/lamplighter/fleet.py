"""What a worker knows of all the others: how many there are, and whether they keep watch."""

from __future__ import annotations

from lamplighter import runtime
from lamplighter.port.values import Beat

MANY = 500
"""From so many on, something is heard from one of them every few milliseconds."""
STALE_BEATS = 2.5
"""So many beats long, what the last one told is believed."""


class Fleet:
    """The workers of a store, as the last sign of life of one of them has told.

    Every sign of life can also tell whether anything is overdue. Where very many give one, what
    falls due is noticed by one of them almost at once, so that nobody else need look for it.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        """How many there are that are not dead."""
        self.quiet_at: float | None = None
        """When a sign of life was last given whose answer said that nothing is overdue."""
        self.forgotten = 0
        """How often the store did not know the worker any more, although it had joined."""
        self._quiet_until: float | None = None
        self.joins = 0
        """How often the worker of this process has joined: its versions may be new."""

    def note(self, beat: Beat, interval: float, sent_at: float) -> None:
        """Take in what a sign of life has told; the next follows after ``interval`` seconds."""
        self.workers = beat.workers
        self._quiet_until = None
        if not beat.overdue:
            self.quiet_at, self._quiet_until = sent_at, sent_at + STALE_BEATS * interval

    @property
    def keeps_watch(self) -> bool:
        """Whether nothing was overdue just now, and others notice when something is."""
        quiet_until = self._quiet_until
        return quiet_until is not None and self.workers >= MANY and runtime.boottime() < quiet_until
