"""From wall times to instants: what happens when the clocks change.

A pattern names wall times. Each is shown by the clocks of its zone once, or not at all (it falls
into a *gap*), or twice (an *overlap*). `Clocks` finds the instants at which a pattern fires, as a
set: where several wall times lead to one instant, it fires once.

Nothing here assumes that a change is one hour, at night, or the only one of its day; only that two
changes are further apart than they are wide, which a test checks for every zone there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from lamplighter.model.schedule.effort import spend
from lamplighter.model.schedule.instants import FIRST, LAST
from lamplighter.model.schedule.timeline import Timeline

_PATIENCE = 450
"""Gaps in a row that swallow a time, under one rule. They repeat after 400 years: 400 is never."""

Mark = Literal["moved out of a gap", "first of two", "second of two"]


class Pattern(Protocol):
    """A set of wall times, in seconds. None is the answer beyond the years 1 to 9999."""

    def next_wall(self, wall: int) -> int | None:
        """Return the first wall time at or after this one."""
        ...

    def previous_wall(self, wall: int) -> int | None:
        """Return the last wall time at or before this one."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the clocks: wall times from ``low`` up to ``high`` are skipped or doubled."""

    at: int
    before: int
    after: int

    @property
    def low(self) -> int:
        """The first wall time that is skipped or doubled."""
        return self.at + min(self.before, self.after)

    @property
    def high(self) -> int:
        """The first wall time behind those."""
        return self.at + max(self.before, self.after)

    @property
    def gap(self) -> bool:
        """Whether the clocks go forward."""
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class Clocks:
    """The instants of a pattern in a zone, in seconds.

    ``skip``: what falls into a gap does not happen; otherwise it happens when the gap ends.
    ``both``: what falls into an overlap happens twice; otherwise the first time only.
    """

    line: Timeline
    pattern: Pattern
    skip: bool
    both: bool

    def after(self, start: int) -> int | None:
        """Return the first instant at or after ``start``."""
        spend()
        start = max(start, FIRST)
        line = self.line
        i, shift = line.stretch(start)
        offset = line.offsets[i]
        wall = start + offset
        if i:
            at, was = line.times[i - 1] + shift, line.offsets[i - 1]
            if was > offset:
                if wall < at + was:
                    # Shown for the second time. What is shown only once comes behind.
                    found = self.pattern.next_wall(wall) if self.both else None
                    if found is not None and found < at + was:
                        return found - offset
                    wall = at + was
            elif start == at and not self.skip:
                # What the gap swallowed happens right here.
                wall = at + was
        again = self._again(i, shift, wall) if self.both else None
        first = self._first(wall)
        if first is None or (again is not None and again < first):
            return again
        return first

    def before(self, end: int) -> int | None:
        """Return the last instant at or before ``end``."""
        spend()
        end = min(end, LAST)
        line = self.line
        i, shift = line.stretch(end)
        wall = end + line.offsets[i]
        if i:
            # While times are shown for the second time, all of them have been shown once.
            high = line.times[i - 1] + shift + line.offsets[i - 1]
            wall = max(wall, high - 1)
        swallowed = 0
        while True:
            spend()
            found = self.pattern.previous_wall(wall)
            if found is None:
                return None
            j, shift = line.place(found)
            offset = line.offsets[j]
            at = found - offset
            if j == line.last:
                break
            change, then = line.times[j] + shift, line.offsets[j + 1]
            if at < change:
                if self.both and found >= change + then:
                    again = self._second(Change(change, offset, then), end)
                    at = at if again is None else again
                break
            if not self.skip:
                at = change
                break
            wall = change + offset - 1
            swallowed += wall > line.regular
            if swallowed > _PATIENCE:
                wall, swallowed = min(wall, line.regular), 0
        return at if at >= FIRST else None

    def changes(self, after: int, count: int) -> Iterator[Change]:
        """Return the next changes of the clocks, later than ``after``."""
        line = self.line
        for _ in range(count):
            i, shift = line.stretch(after)
            if i == line.last:
                return
            after = line.times[i] + shift
            yield Change(after, line.offsets[i], line.offsets[i + 1])

    def affected(self, change: Change) -> int | None:
        """Return the first wall time of the pattern that a change skips or doubles."""
        found = self.pattern.next_wall(change.low)
        return found if found is not None and found < change.high else None

    def mark(self, at: int) -> Mark | None:
        """Say what a change of the clocks has to do with this instant of the pattern."""
        line = self.line
        i, shift = line.stretch(at)
        wall = at + line.offsets[i]
        if i:
            last = Change(line.times[i - 1] + shift, line.offsets[i - 1], line.offsets[i])
            if last.gap:
                moved = at == last.at and not self.skip and self.affected(last) is not None
                if moved:
                    return "moved out of a gap"
            elif wall < last.high:
                return "second of two"
        if i < line.last:
            coming = Change(line.times[i] + shift, line.offsets[i], line.offsets[i + 1])
            if not coming.gap and wall >= coming.low:
                return "first of two"
        return None

    def _first(self, wall: int) -> int | None:
        """Return the instant of the first wall time from here, the first where there are two."""
        line = self.line
        swallowed = 0
        while swallowed <= _PATIENCE:
            spend()
            found = self.pattern.next_wall(wall)
            if found is None:
                return None
            i, shift = line.place(found)
            at = found - line.offsets[i]
            if i < line.last and at >= line.times[i] + shift:
                at = line.times[i] + shift
                if self.skip:
                    wall = at + line.offsets[i + 1]
                    swallowed += wall > line.regular
                    continue
            return at if at <= LAST else None
        return None

    def _again(self, i: int, shift: int, wall: int) -> int | None:
        """Return the first that comes again, when this wall time is one that will come again."""
        line = self.line
        if i == line.last:
            return None
        at, offset, then = line.times[i] + shift, line.offsets[i], line.offsets[i + 1]
        if wall <= at + then:
            return None
        found = self.pattern.next_wall(at + then)
        return None if found is None or found >= at + offset else found - then

    def _second(self, change: Change, end: int) -> int | None:
        """Return the last of an overlap's second times up to ``end``."""
        found = self.pattern.previous_wall(min(change.high - 1, end + change.after))
        return None if found is None or found < change.low else found - change.after
