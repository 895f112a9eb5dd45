"""Job types that killed or hurt a process: which of them run alone, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lamplighter import runtime
from lamplighter.observability import events
from lamplighter.worker.link import Isolate

AGAIN = 15.0
"""Seconds within which a second death makes the types of both run alone."""
PROBATION = 60.0
"""Seconds for which they do."""
SENTENCE = 600.0
"""Seconds for which jobs of a type run alone after one of them has killed its process."""


class Probation:
    """Knows the types whose jobs run alone at present; ``tell`` reaches all children."""

    def __init__(self, tell: Callable[[Isolate], None]) -> None:
        self._tell = tell
        self._suspected: dict[str, float] = {}
        """Types that were at work when a child died, and when that was."""
        self._isolated: dict[str, float] = {}
        """Types whose jobs run alone, and until when."""

    def suspect(self, types: Iterable[str], how: str) -> None:
        """Isolate types that were at work in two children which ended badly within a short time.

        Which job does it shows only when it runs alone. Until then, others of its type, which
        may be as bad, would kill one child after another.
        """
        now = runtime.boottime()
        for name in types:
            if now - self._suspected.get(name, -AGAIN) < AGAIN:
                self.isolate(name, PROBATION, how)
            self._suspected[name] = now

    def isolate(self, name: str, seconds: float, how: str) -> None:
        """Have every child run jobs of that type alone for a while."""
        now, known = runtime.boottime(), self.left()
        if name not in known:
            events.emit(events.TYPE_ISOLATED, type=name, seconds=seconds, how=how)
        if known.get(name, 0.0) < seconds:
            self._isolated[name] = now + seconds
            self._tell(Isolate({name: seconds}))

    def left(self) -> dict[str, float]:
        """Return the types whose jobs run alone, and for how many seconds they still do."""
        now = runtime.boottime()
        return {name: until - now for name, until in self._isolated.items() if until > now}
