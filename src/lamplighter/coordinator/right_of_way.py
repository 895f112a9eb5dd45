"""Who goes first when very many schedules are due at once: firing, for a while."""

from __future__ import annotations

RECOVERY = 0.1
"""Seconds of it that are gained with each second without it."""
LEAST = 0.1
"""Part of the allowance that must be there for it to begin."""


class RightOfWay:
    """An allowance of ``most`` seconds for which others make way, up to ``longest`` at a time.

    An occurrence that is not fired has no place in the line yet: neither its priority nor its
    tenant's share counts. So firing goes first, but not for ever. When the allowance is used up,
    what is left of it comes back slowly, and ordinary jobs have the rest of the time.
    """

    def __init__(self, most: float, longest: float, now: float) -> None:
        self._most = self._left = most
        self._longest = longest
        self._at = now
        self._granted = False

    def ask(self, now: float, *, rush: bool) -> bool:
        """Say whether others make way from now on; ``rush``: whether there is a reason to.

        What was used beyond the allowance, because nobody asked in time, has to come back too.
        """
        passed, self._at = now - self._at, now
        gained = -min(passed, self._longest) if self._granted else passed * RECOVERY
        self._left = min(self._left + gained, self._most)
        enough = 0.0 if self._granted else self._most * LEAST
        self._granted = rush and self._left > 0.0 and self._left >= enough
        return self._granted
