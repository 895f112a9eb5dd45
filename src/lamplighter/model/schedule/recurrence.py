"""The wall times of a recurrence rule.

Days come from the masks of `years`, times of day from `times`; what is left to do here is to keep
to the interval, to choose by position and to count. A search never looks at days one by one, and
it ends: years of the same kind come again, and what they never hold is never found. A rhythm of
hours, minutes or seconds is not followed either: on which days it meets a time is arithmetic. What
is left to look at is paid for (`effort`).

To make a recurrence costs nothing: what a search needs is worked out by the first one, and counted
as far as it looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import isleap
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache, cached_property, lru_cache
from math import gcd, lcm

from lamplighter.model.schedule.effort import apart, spend
from lamplighter.model.schedule.instants import DAY, DAY_ZERO, FIRST, LAST
from lamplighter.model.schedule.rhythm import Rhythm, rhythm
from lamplighter.model.schedule.rules import FREQUENCIES, Rule
from lamplighter.model.schedule.times import Times, bits, high, low
from lamplighter.model.schedule.years import Years, kinds, month_masks

_YEARLY = FREQUENCIES.index("YEARLY")
_MONTHLY = FREQUENCIES.index("MONTHLY")
_WEEKLY = FREQUENCIES.index("WEEKLY")
_HOURLY = FREQUENCIES.index("HOURLY")
_DENSE = 1_500
"""Times of day beyond which a rhythm meets one of them soon, and is looked for day by day."""
_BARREN = 400
"""Years in a row without a day after which it is asked whether any kind of year has one."""


class Recurrence:
    """The wall times of a rule from its start on."""

    def __init__(self, rule: Rule, start: int) -> None:
        self._rule = rule = rule.completed(start)
        self._start = start
        first = date.fromordinal(start // DAY + DAY_ZERO)
        self._month = first.year * 12 + first.month
        self._end = LAST if rule.until is None or rule.until_utc else rule.until
        self._years = Years(rule)
        self._times = Times(*(_mask(part) for part in (rule.hours, rule.minutes, rule.seconds)))
        step = rule.interval
        self._partly = step > 1 and rule.freq == _MONTHLY
        """Whether the interval leaves out months of a year."""
        self._yearly = step if rule.freq == _YEARLY else 1
        # Years that look alike come again after 400 years, in the same phase after more.
        self._reach = lcm(400, step // gcd(step, 12) if self._partly else self._yearly)
        self._unit = (3600, 60, 1)[rule.freq - _HOURLY] if rule.sub_daily else DAY
        """Seconds of what the interval counts, where days are not all there is to it."""
        self._latest: tuple[int, list[int]] = (LAST, [])
        """First day of the set that was looked at last, and what was chosen of it."""
        self._counted: tuple[list[int], bool] = ([], False)
        """What has been counted so far, and whether that is all."""

    def next_wall(self, wall: int) -> int | None:
        """Return the first wall time at or after this one."""
        if self._rule.count is not None:
            counted = self._count(wall)
            place = bisect_left(counted, wall)
            return counted[place] if place < len(counted) else None
        wall = max(wall, self._start)
        found = self._next(wall) if wall <= self._end else None
        return found if found is not None and found <= self._end else None

    def previous_wall(self, wall: int) -> int | None:
        """Return the last wall time at or before this one."""
        if self._rule.count is not None:
            counted = self._count(wall + 1)
            place = bisect_right(counted, wall)
            return counted[place - 1] if place else None
        wall = min(wall, self._end)
        found = self._previous(wall) if wall >= self._start else None
        return found if found is not None and found >= self._start else None

    @cached_property
    def possible(self) -> bool:
        """Whether there is any, wherever it ends, and all that count can be found."""
        if self._rhythm is not None and not self._rhythm.days:
            return False
        nearest = min(map(abs, self._rule.positions), default=1)
        with apart():
            if nearest > 1 and nearest > self._largest() * len(self._times):
                return False
            if self._rule.count is not None:
                return bool(self._count(LAST + 1))
            return self._next(self._start) is not None

    def _largest(self) -> int:
        """Return a number of days that no set in which positions count goes beyond."""
        freq = self._rule.freq
        if freq > _WEEKLY:
            return 1
        if freq == _WEEKLY:
            return len({weekday for weekday, _ in self._rule.days}) or 7
        spend(2 * len(kinds()))
        found = 0
        for year in kinds():
            mask = self._years.mask(year)
            sets = month_masks(leap=isleap(year)) if freq == _MONTHLY else (mask,)
            found = max(found, *((mask & days).bit_count() for days in sets))
        return found

    @cached_property
    def _rhythm(self) -> Rhythm | None:
        """The days on which the interval comes to a time of day.

        None: each of them, or so many that there is nothing to leap over.
        """
        rule, first = self._rule, self._start // DAY
        if rule.interval == 1 or rule.freq < _WEEKLY:
            return None
        if rule.freq == _WEEKLY:
            return Rhythm.of(7 * rule.interval, range(self._week(first), self._week(first) + 7))
        if not rule.sub_daily:
            return Rhythm.of(rule.interval, [first])
        unit = self._unit
        seconds = self._times.seconds if unit == 1 else 1
        minutes = self._times.minutes if unit < 3600 else 1
        times = Times(self._times.hours, minutes, seconds)
        if len(times) > _DENSE:
            return None if self._meets() else Rhythm(1, ())
        return rhythm(DAY // unit, rule.interval, self._start // unit, (at // unit for at in times))

    def _meets(self) -> bool:
        """Tell whether a rhythm ever meets a time of day."""
        unit = self._unit
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

    def _count(self, wall: int) -> list[int]:
        """Return what counts, at least up to the first at or after a wall time."""
        counted, complete = self._counted
        if complete or (counted and counted[-1] >= wall):
            return counted
        found = [*counted]
        # What is looked at here is not looked at again, however many ask.
        with apart():
            while not complete and not (found and found[-1] >= wall):
                following = self._next(found[-1] + 1 if found else self._start)
                if following is not None:
                    found.append(following)
                complete = following is None or len(found) == self._rule.count
        self._counted = found, complete
        return found

    # ── search ───────────────────────────────────────────────────────────────────────────────

    def _next(self, wall: int) -> int | None:
        day, time = divmod(wall, DAY)
        while True:
            spend()
            found = self._next_meeting(day)
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

    def _previous(self, wall: int) -> int | None:
        day, time = divmod(wall, DAY)
        while True:
            spend()
            found = self._previous_meeting(day)
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

    # ── days ─────────────────────────────────────────────────────────────────────────────────

    def _next_meeting(self, day: int) -> int | None:
        """Return the first day from here on that the rule names and its rhythm comes to."""
        rhythm, barren = self._rhythm, 0
        if rhythm is None:
            return self._next_day(day)
        if not rhythm.days:
            return None
        day = rhythm.next(day)
        while day <= LAST // DAY:
            spend()
            year = _year(day)
            begins, mask = _begins(year), self._years.mask(year)
            barren = 0 if mask else barren + 1
            if barren > _BARREN and not self._years.any:
                return None
            mask &= -1 << day - begins
            while mask:
                found = begins + low(mask)
                day = rhythm.next(found)
                if day == found:
                    return found
                spend()
                mask = mask & -1 << day - begins if day < begins + 366 else 0
            if day < _begins(year + 1):
                day = rhythm.next(_begins(year + 1))
        return None

    def _previous_meeting(self, day: int) -> int | None:
        """Return the last day up to here that the rule names and its rhythm comes to."""
        rhythm = self._rhythm
        if rhythm is None:
            return self._previous_day(day)
        if not rhythm.days:
            return None
        day = rhythm.previous(day)
        while day >= self._start // DAY:
            spend()
            year = _year(day)
            begins, mask = _begins(year), self._years.mask(year)
            mask &= (2 << day - begins) - 1
            while mask:
                found = begins + high(mask)
                day = rhythm.previous(found)
                if day == found:
                    return found
                spend()
                mask = mask & (2 << day - begins) - 1 if day >= begins else 0
            if day >= begins:
                day = rhythm.previous(begins - 1)
        return None

    def _next_day(self, day: int) -> int | None:
        if day > LAST // DAY:
            return None
        for each in self._in_phase(_year(day), 9999):
            spend()
            begins = _begins(each)
            mask = self._mask(each)
            if day > begins:
                mask &= -1 << day - begins
            if mask:
                return begins + low(mask)
        return None

    def _previous_day(self, day: int) -> int | None:
        if day < FIRST // DAY:
            return None
        year, first = _year(day), _year(self._start // DAY)
        for each in self._in_phase(year, first) if year >= first else ():
            spend()
            begins = _begins(each)
            mask = self._mask(each)
            if day < begins + 366:
                mask &= (2 << day - begins) - 1
            if mask:
                return begins + high(mask)
        return None

    def _in_phase(self, start: int, end: int) -> Iterable[int]:
        """Yield the years of the interval from a year on, forward or back."""
        if self._partly and self._rule.interval >= 12:
            return _years_of_months(self._month - 1, self._rule.interval, start, end)
        yearly, reach = self._yearly, self._reach
        first = (self._month - 1) // 12
        if end >= start:
            return range(start + (first - start) % yearly, min(end, start + reach) + 1, yearly)
        return range(start - (start - first) % yearly, max(end, start - reach) - 1, -yearly)

    def _mask(self, year: int) -> int:
        """Return the days of a year; months that the interval leaves out have none."""
        mask = self._years.mask(year)
        if mask and self._partly:
            step = self._rule.interval
            return mask & _every((self._month - year * 12) % step, step, leap=isleap(year))
        return mask

    def _week(self, day: int) -> int:
        """Return the day with which a week begins."""
        # 1970 began with a Thursday.
        return day - (day + 3 - self._rule.wkst) % 7

    # ── positions ────────────────────────────────────────────────────────────────────────────

    def _period(self, day: int) -> tuple[int, int]:
        """Return the first and the last day of the set in which positions count."""
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
        """Return the wall times at the positions that are asked for."""
        spend()
        latest, chosen = self._latest
        if latest == first:
            return chosen
        days = self._days(first, last)
        hours, minutes, seconds = ([*bits(mask)] for mask in self._times.parts)
        size = len(self._times)
        total = len(days) * size
        spend(4 + len(days) // 2 + (len(hours) + len(minutes) + len(seconds)) // 4)
        found: set[int] = set()
        for position in self._rule.positions:
            place = position - 1 if position > 0 else total + position
            if 0 <= place < total:
                spend()
                day, rest = divmod(place, size)
                rest, second = divmod(rest, len(seconds))
                hour, minute = divmod(rest, len(minutes))
                found.add(
                    days[day] * DAY + hours[hour] * 3600 + minutes[minute] * 60 + seconds[second]
                )
        chosen = sorted(at for at in found if self._start <= at <= LAST)
        self._latest = first, chosen
        return chosen

    def _days(self, first: int, last: int) -> list[int]:
        found: list[int] = []
        first = max(first, FIRST // DAY)
        for year in range(_year(first), _year(min(last, LAST // DAY)) + 1):
            begins = _begins(year)
            mask = self._mask(year)
            mask &= -1 << max(0, first - begins)
            mask &= (2 << last - begins) - 1
            found += [begins + day for day in bits(mask)]
        return found

    # ── times of day ─────────────────────────────────────────────────────────────────────────

    def _next_time(self, day: int, time: int) -> int:
        if self._rule.freq < _HOURLY or self._rule.interval == 1:
            return self._times.next(time)
        hours, minutes = self._hours(day) & -1 << time // 3600, self._times.minutes
        for hour in bits(hours):
            # What lies before the time is not looked at.
            ahead = minutes & -1 << time // 60 % 60 if hour == time // 3600 else minutes
            for part in self._hour(day * 24 + hour, 1 << hour, ahead, 1):
                found = part.next(time)
                if found >= 0:
                    return found
        return -1

    def _previous_time(self, day: int, time: int) -> int:
        if self._rule.freq < _HOURLY or self._rule.interval == 1:
            return self._times.previous(time)
        hours, minutes = self._hours(day) & (2 << time // 3600) - 1, self._times.minutes
        for hour in reversed([*bits(hours)]):
            behind = minutes & (2 << time // 60 % 60) - 1 if hour == time // 3600 else minutes
            for part in self._hour(day * 24 + hour, 1 << hour, behind, -1):
                found = part.previous(time)
                if found >= 0:
                    return found
        return -1

    def _hours(self, day: int) -> int:
        """Return the hours of a day to which the interval may come."""
        step = self._rule.interval * self._unit
        if step <= 3600:
            return self._times.hours
        spend()
        first = (self._start // self._unit * self._unit - day * DAY) % step
        return self._times.hours & _mask(at // 3600 for at in range(first, DAY, step))

    def _hour(self, since: int, hour: int, minutes: int, way: int) -> Iterator[Times]:
        """Yield the times of some minutes of an hour that the interval leaves.

        The hour is so many hours since 1970; ``way`` is 1, or -1 to begin with the last.
        """
        spend()
        seconds, step = self._times.seconds, self._rule.interval
        match self._rule.freq:
            case 4:
                if minutes and (since - self._start // 3600) % step == 0:
                    yield Times(hour, minutes, seconds)
            case 5:
                left = minutes & _repeated((self._start // 60 - since * 60) % step, step)
                if left:
                    yield Times(hour, left, seconds)
            case _ if step > 60:
                steps = range((self._start - since * 3600) % step, 3600, step)
                spend(len(steps) // 4)
                for at in steps[::way]:
                    if minutes >> at // 60 & seconds >> at % 60 & 1:
                        yield Times(hour, 1 << at // 60, 1 << at % 60)
            case _:
                for minute in [*bits(minutes)][::way]:
                    spend()
                    phase = (self._start - since * 3600 - minute * 60) % step
                    left = seconds & _repeated(phase, step)
                    if left:
                        yield Times(hour, 1 << minute, left)


@lru_cache(maxsize=1024)
def _repeated(start: int, step: int) -> int:
    """Return the mask of every so many minutes of an hour, or seconds of a minute."""
    return sum(1 << at for at in range(start, 60, step))


@lru_cache(maxsize=1024)
def _every(first: int, step: int, *, leap: bool) -> int:
    """Return the days of a month of a year, and of every so many months behind it."""
    return sum(month_masks(leap=leap)[first::step])


def _years_of_months(first: int, step: int, start: int, end: int) -> Iterator[int]:
    """Yield the years, forward or back, in which months lie that are so many months apart."""
    ahead = end >= start
    month = start * 12 + (first - start * 12) % step
    if not ahead:
        month = start * 12 + 11 - (start * 12 + 11 - first) % step
    while month // 12 <= end if ahead else month // 12 >= end:
        yield month // 12
        month += step if ahead else -step


def _year(day: int) -> int:
    return date.fromordinal(day + DAY_ZERO).year


@cache
def _begins(year: int) -> int:
    """Return the first day of a year, since 1970."""
    return _ordinal(year, 1)


def _mask(values: Iterable[int]) -> int:
    return sum(1 << value for value in values)


def _ordinal(year: int, month: int) -> int:
    """Return the first day of a month since 1970; months behind December are those of next year."""
    # Beyond the last year there is no date, but a December has to end.
    if month > 12:
        return date(year, 12, 31).toordinal() + 1 - DAY_ZERO
    if year > 9999:
        return LAST // DAY + 1
    return date(year, month, 1).toordinal() - DAY_ZERO
