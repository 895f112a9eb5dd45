"""The store's clock in tests: it moves only when told."""

from __future__ import annotations

START_MS = 1_700_000_000_000
"""Where a virtual clock starts; in the past, so that processes with a real clock find jobs due."""


class VirtualClock:
    """Milliseconds since 1970 that a test moves by hand, forward or back."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Tell the time."""
        return self._now_ms

    def advance(self, *, seconds: float = 0, ms: int = 0) -> None:
        """Move the clock on, or back by a negative amount."""
        self._now_ms += round(seconds * 1000) + ms

    def set(self, ms: int) -> None:
        """Set the clock to an instant."""
        self._now_ms = ms
