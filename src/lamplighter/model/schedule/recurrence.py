"""The wall times of a recurrence rule.

Days come from the masks of `years`, times of day from `times`; what is left to do here is to keep
to the interval, to choose by position and to count. A search never looks at days one by one, and
it ends: years of the same kind come again, and what they never hold is never found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import isleap
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from math import gcd

from lamplighter.model.errors import InvalidOption
from lamplighter.model.schedule.instants import DAY, DAY_ZERO, FIRST, LAST
from lamplighter.model.schedule.rules import FREQUENCIES, Rule
from lamplighter.model.schedule.times import Times, bits, high, low
from lamplighter.model.schedule.years import Years, month_masks

_YEARLY = FREQUENCIES.index("YEARLY")
_HOURLY = FREQUENCIES.index("HOURLY")
_PATIENCE = 1_500
"""Days, or sets to choose from, that are looked at in vain before a rule is given up."""


class Recurrence:
    """The wall times of a rule from its start on."""

    __slots__ = ("_counted", "_end", "_rule", "_start", "_times", "_years")

    def __init__(self, rule: Rule, start: int) -> None:
        self._rule = rule = rule.completed(start)
        self._start = start
        self._end = LAST if rule.until is None or rule.until_utc else rule.until
        self._years = Years(rule)
        self._times = Times(*(_mask(part) for part in (rule.hours, rule.minutes, rule.seconds)))
        self._counted: list[int] | None = None
        if rule.count is not None and self.possible():
            self._counted = self._count(rule.count)

    def next_wall(self, wall: int) -> int | None:
        """Give the first wall time at or after this one."""
        if self._counted is not None:
            place = bisect_left(self._counted, wall)
            return self._counted[place] if place < len(self._counted) else None
        wall = max(wall, self._start)
        found = self._next(wall) if wall <= self._end else None
        return found if found is not None and found <= self._end else None

    def previous_wall(self, wall: int) -> int | None:
        """Give the last wall time at or before this one."""
        if self._counted is not None:
            place = bisect_right(self._counted, wall)
            return self._counted[place - 1] if place else None
        wall = min(wall, self._end)
        found = self._previous(wall) if wall >= self._start else None
        return found if found is not None and found >= self._start else None

    def possible(self) -> bool:
        """Tell whether there is any, wherever it ends."""
        if self._rule.sub_daily and self._rule.interval > 1 and not self._meets():
            return False
        return self._next(self._start) is not None

    def _meets(self) -> bool:
        """Tell whether a rhythm of hours, minutes or seconds ever meets a time of day."""
        unit = (3600, 60, 1)[self._rule.freq - _HOURLY]
        # On its way through the days it comes to every time that is whole steps of this away.
        step = gcd(self._rule.interval * unit, DAY)
        start = self._start // unit * unit
        seconds = {second // unit * unit % step for second in bits(self._times.seconds)}
        for hour in bits(self._times.hours):
            for minute in bits(self._times.minutes):
                at = (hour * 3600 + minute * 60) // unit * unit
                if (start - at) % step in seconds:
                    return True
        return False

    def _count(self, count: int) -> list[int]:
        found: list[int] = []
        wall = self._next(self._start)
        while wall is not None and len(found) < count:
            found.append(wall)
            wall = self._next(wall + 1)
        return found

    # ── search ───────────────────────────────────────────────────────────────────────────────

    def _next(self, wall: int) -> int | None:
        day, time = divmod(wall, DAY)
        for _ in range(_PATIENCE):
            found = self._next_day(day)
            if found is None:
                return None
            if found > day:
                day, time = found, 0
            if self._rule.positions:
                first, last = self._period(day)
                chosen = self._chosen(first, last)
                place = bisect_left(chosen, day * DAY + time)
                if place < len(chosen):
                    return chosen[place]
                day, time = last + 1, 0
                continue
            at = self._next_time(day, time)
            if at >= 0:
                return day * DAY + at
            day, time = day + 1, 0
        raise _sparse()

    def _previous(self, wall: int) -> int | None:
        day, time = divmod(wall, DAY)
        for _ in range(_PATIENCE):
            found = self._previous_day(day)
            if found is None or (found + 1) * DAY <= self._start:
                return None
            if found < day:
                day, time = found, DAY - 1
            if self._rule.positions:
                first, last = self._period(day)
                chosen = self._chosen(first, last)
                place = bisect_right(chosen, day * DAY + time)
                if place:
                    return chosen[place - 1]
                day, time = first - 1, DAY - 1
                continue
            at = self._previous_time(day, time)
            if at >= 0:
                return day * DAY + at
            day, time = day - 1, DAY - 1
        raise _sparse()

    # ── days ─────────────────────────────────────────────────────────────────────────────────

    def _next_day(self, day: int) -> int | None:
        if day > LAST // DAY:
            return None
        year = date.fromordinal(day + DAY_ZERO).year
        for each in self._in_phase(year, 9999):
            begins = date(each, 1, 1).toordinal() - DAY_ZERO
            mask = self._mask(each, begins)
            if day > begins:
                mask &= -1 << day - begins
            if mask:
                return begins + low(mask)
        return None

    def _previous_day(self, day: int) -> int | None:
        if day < FIRST // DAY:
            return None
        year = date.fromordinal(day + DAY_ZERO).year
        for each in self._in_phase(year, date.fromordinal(self._start // DAY + DAY_ZERO).year):
            begins = date(each, 1, 1).toordinal() - DAY_ZERO
            mask = self._mask(each, begins)
            if day < begins + 366:
                mask &= (2 << day - begins) - 1
            if mask:
                return begins + high(mask)
        return None

    def _in_phase(self, start: int, end: int) -> range:
        """Give the years of the interval from a year on, forward or back."""
        yearly = self._rule.interval if self._rule.freq == _YEARLY else 1
        first = date.fromordinal(self._start // DAY + DAY_ZERO).year
        # Without an interval, years that look alike come again after 400 years.
        reach = LAST if self._rule.interval > 1 else 400
        if end >= start:
            return range(start + (first - start) % yearly, min(end, start + reach) + 1, yearly)
        return range(start - (start - first) % yearly, max(end, start - reach) - 1, -yearly)

    def _mask(self, year: int, begins: int) -> int:
        """Give the days of a year that the interval leaves; it begins with that day."""
        mask = self._years.mask(year)
        step = self._rule.interval
        if step == 1 or not mask:
            return mask
        match self._rule.freq:
            case 1:
                return mask & self._months(year)
            case 2:
                first = self._week(self._start // DAY)
                phase = (first - begins) % (7 * step)
                return mask & _repeated(0x7F, phase - 7 * step, 7 * step)
            case 3:
                return mask & _repeated(1, (self._start // DAY - begins) % step, step)
            case _:
                return mask

    def _months(self, year: int) -> int:
        start = date.fromordinal(self._start // DAY + DAY_ZERO)
        before = (year - start.year) * 12 - start.month
        months = enumerate(month_masks(leap=isleap(year)))
        return sum(days for month, days in months if (before + month) % self._rule.interval == 0)

    def _week(self, day: int) -> int:
        """Give the day with which a week begins."""
        # 1970 began with a Thursday.
        return day - (day + 3 - self._rule.wkst) % 7

    # ── positions ────────────────────────────────────────────────────────────────────────────

    def _period(self, day: int) -> tuple[int, int]:
        """Give the first and the last day of the set in which positions count."""
        at = date.fromordinal(day + DAY_ZERO)
        match self._rule.freq:
            case 0:
                return _ordinal(at.year, 1), _ordinal(at.year + 1, 1) - 1
            case 1:
                return _ordinal(at.year, at.month), _ordinal(at.year, at.month + 1) - 1
            case 2:
                return self._week(day), self._week(day) + 6
            case _:
                return day, day

    def _chosen(self, first: int, last: int) -> list[int]:
        """Give the wall times at the positions that are asked for."""
        days = self._days(first, last)
        times = self._times
        size = len(times)
        total = len(days) * size
        found: set[int] = set()
        for position in self._rule.positions:
            place = position - 1 if position > 0 else total + position
            if 0 <= place < total:
                found.add(days[place // size] * DAY + _nth(times, place % size))
        return sorted(at for at in found if self._start <= at <= LAST)

    def _days(self, first: int, last: int) -> list[int]:
        found: list[int] = []
        day = self._next_day(max(first, FIRST // DAY))
        while day is not None and day <= last:
            found.append(day)
            day = self._next_day(day + 1)
        return found

    # ── times of day ─────────────────────────────────────────────────────────────────────────

    def _next_time(self, day: int, time: int) -> int:
        if self._rule.freq < _HOURLY or self._rule.interval == 1:
            return self._times.next(time)
        for hour in bits(self._times.hours & -1 << time // 3600):
            for part in self._hour(day * 24 + hour, 1 << hour):
                found = part.next(time)
                if found >= 0:
                    return found
        return -1

    def _previous_time(self, day: int, time: int) -> int:
        if self._rule.freq < _HOURLY or self._rule.interval == 1:
            return self._times.previous(time)
        for hour in reversed([*bits(self._times.hours & (2 << time // 3600) - 1)]):
            parts = self._hour(day * 24 + hour, 1 << hour)
            found = max((part.previous(time) for part in parts), default=-1)
            if found >= 0:
                return found
        return -1

    def _hour(self, since: int, hour: int) -> Iterator[Times]:
        """Give the times of one hour, so many hours since 1970, that the interval leaves."""
        minutes, seconds, step = self._times.minutes, self._times.seconds, self._rule.interval
        match self._rule.freq:
            case 4:
                if (since - self._start // 3600) % step == 0:
                    yield Times(hour, minutes, seconds)
            case 5:
                left = minutes & _repeated(1, (self._start // 60 - since * 60) % step, step)
                if left:
                    yield Times(hour, left, seconds)
            case _ if step > 60:
                for at in range((self._start - since * 3600) % step, 3600, step):
                    if minutes >> at // 60 & seconds >> at % 60 & 1:
                        yield Times(hour, 1 << at // 60, 1 << at % 60)
            case _:
                for minute in bits(minutes):
                    phase = (self._start - since * 3600 - minute * 60) % step
                    left = seconds & _repeated(1, phase, step)
                    if left:
                        yield Times(hour, 1 << minute, left)


@lru_cache(maxsize=1024)
def _repeated(block: int, start: int, step: int) -> int:
    """Give a block of bits again and again, as far as a year is long."""
    found = 0
    for at in range(start, 366, step):
        found |= block << at if at >= 0 else block >> -at
    return found


def _mask(values: tuple[int, ...]) -> int:
    return sum(1 << value for value in values)


def _nth(times: Times, place: int) -> int:
    """Give the time of day with a place in the order of all of them."""
    rest, second = divmod(place, times.seconds.bit_count())
    hour, minute = divmod(rest, times.minutes.bit_count())
    parts = (times.hours, hour, 3600), (times.minutes, minute, 60), (times.seconds, second, 1)
    return sum([*bits(mask)][at] * size for mask, at, size in parts)


def _ordinal(year: int, month: int) -> int:
    """Give the first day of a month since 1970; months behind December are those of next year."""
    # Beyond the last year there is no date, but a December has to end.
    if month > 12:
        return date(year, 12, 31).toordinal() + 1 - DAY_ZERO
    if year > 9999:
        return LAST // DAY + 1
    return date(year, month, 1).toordinal() - DAY_ZERO


def _sparse() -> InvalidOption:
    return InvalidOption(
        "the rule names no time in any of a great number of days",
        hint="check INTERVAL against the BY… parts, or write it with a coarser FREQ",
    )
