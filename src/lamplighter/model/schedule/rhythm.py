"""On which days a rhythm meets a time of day, by arithmetic.

A rhythm is a step of so many hours, minutes or seconds. It comes to a time of day on days that are
the same number of days apart, or never.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Days that leave certain rests when they are divided by a period."""

    period: int
    days: tuple[int, ...]
    """The rests, in order; none: there is no such day."""

    @classmethod
    def of(cls, period: int, days: Iterable[int]) -> Rhythm:
        """Make it of days, which come again after a period."""
        return cls(period, tuple(sorted({day % period for day in days})))

    def next(self, day: int) -> int:
        """Return the first such day at or after this one."""
        rest = day % self.period
        place = bisect_left(self.days, rest)
        if place < len(self.days):
            return day - rest + self.days[place]
        return day - rest + self.period + self.days[0]

    def previous(self, day: int) -> int:
        """Return the last such day at or before this one."""
        rest = day % self.period
        place = bisect_right(self.days, rest)
        if place:
            return day - rest + self.days[place - 1]
        return day - rest - self.period + self.days[-1]


def rhythm(per_day: int, step: int, start: int, times: Iterable[int]) -> Rhythm:
    """Return the days on which steps from a start come to one of these times of day.

    All is counted in the same unit, of which a day has ``per_day``.
    """
    common = gcd(per_day, step)
    period = step // common
    # Steps come to a day d at the time t if d * per_day + t - start is a number of whole steps.
    inverse = pow(per_day // common, -1, period) if period > 1 else 0
    rests = {
        (start - time) // common * inverse % period
        for time in times
        if (start - time) % common == 0
    }
    return Rhythm(period, tuple(sorted(rests)))
