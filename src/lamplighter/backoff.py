"""How long to wait after a failure, and longer after each further one."""

from __future__ import annotations

from dataclasses import dataclass

from lamplighter import runtime

_MOST_DOUBLINGS = 60
"""Beyond, the power of two is only a large number."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double, from ``first`` to ``longest`` seconds."""

    first: float
    longest: float
    spread: float = 0.0
    """Part of a pause by which it differs by chance, either way: those who have failed together do
    not come again together."""

    def after(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row; none after 0."""
        if failures <= 0:
            return 0.0
        pause = min(self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest)
        if self.spread:
            pause *= 1.0 - self.spread + 2.0 * self.spread * runtime.random()
        return pause
