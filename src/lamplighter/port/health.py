"""How long a worker may be silent before others give it up."""

from __future__ import annotations

SUSPECT_MS = 15_000
DEAD_MS = 30_000


DEAD = "dead"


def health(silent_ms: int) -> str:
    """Say what a worker is after that long without a beat."""
    if silent_ms >= DEAD_MS:
        return DEAD
    return "suspect" if silent_ms >= SUSPECT_MS else "alive"


def at_work(running: int, silent_ms: int) -> int:
    """Return how many handlers of a worker run: of a dead one none, whatever it said last."""
    return 0 if health(silent_ms) == DEAD else running
