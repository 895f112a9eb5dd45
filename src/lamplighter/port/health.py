"""How long a worker may be silent before others give it up."""

from __future__ import annotations

SUSPECT_MS = 15_000
DEAD_MS = 30_000


def health(silent_ms: int) -> str:
    """Say what a worker is after that long without a beat."""
    if silent_ms >= DEAD_MS:
        return "dead"
    return "suspect" if silent_ms >= SUSPECT_MS else "alive"
