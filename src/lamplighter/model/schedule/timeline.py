"""When the clocks of a zone change, and by how much."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from lamplighter.model.schedule.instants import CYCLE

_NEVER = 1 << 62


class Timeline:
    """All changes of a zone's clocks, in seconds since 1970.

    Between two changes lies a *stretch* of one offset: stretch ``i`` has ``offsets[i]``, ends
    before ``times[i]`` and begins with ``times[i - 1]``. Where a zone has a rule for the future,
    the table holds 400 years of it, and what lies behind is looked up there, a number of whole
    cycles earlier. That number of seconds is called the *shift*.
    """

    __slots__ = ("_fold", "_full", "_highs", "last", "offsets", "times")

    def __init__(self, before: int, changes: Sequence[tuple[int, int]], fold: int | None) -> None:
        self.times = array("q", [at for at, _ in changes])
        self.offsets = array("l", [before, *(offset for _, offset in changes)])
        self.last = len(self.times)
        """The number of the last stretch."""
        self._highs = array(
            "q",
            [at + max(self.offsets[i : i + 2]) for i, at in enumerate(self.times)],
        )
        self._fold = _NEVER if fold is None else fold
        self._full = _NEVER if fold is None else fold + CYCLE

    @property
    def regular(self) -> int:
        """From when on nothing but the rule for the future holds."""
        if self._fold != _NEVER:
            return self._fold
        return self.times[-1] if self.last else -_NEVER

    def stretch(self, at: int) -> tuple[int, int]:
        """Return the number of the stretch that holds an instant, and its shift."""
        shift = 0
        if at >= self._full:
            shift = (at - self._fold) // CYCLE * CYCLE
        return bisect_right(self.times, at - shift), shift

    def place(self, wall: int) -> tuple[int, int]:
        """Return the stretch in which a wall time is first shown, and its shift.

        Where the clocks skip it, that is the stretch before the gap, which ends before it.
        """
        shift = 0
        if wall >= self._full:
            shift = (wall - self._fold) // CYCLE * CYCLE
        return bisect_right(self._highs, wall - shift), shift

    def offset(self, at: int) -> int:
        """Return the distance from UTC at an instant, in seconds to the east."""
        number, _ = self.stretch(at)
        return self.offsets[number]
