"""Which days of a year a recurrence rule names, by what the year looks like.

A year is known by its length, by the weekday it begins with and, for the numbers of its weeks, by
whether its neighbours are leap years. There are few such kinds; each is worked out once.
Bit n of a mask stands for the n-th day of the year, counted from 0. Monday is weekday 0.
"""

from __future__ import annotations

from calendar import isleap
from datetime import date
from functools import cache, cached_property
from itertools import accumulate, pairwise

from lamplighter.model.schedule.months import LENGTHS
from lamplighter.model.schedule.rules import Rule
from lamplighter.model.schedule.times import high, low

_EVERY_SEVENTH = sum(1 << 7 * week for week in range(54))

_Kind = tuple[bool, int, bool, bool]


class Years:
    """The days of years that the BY… parts of a rule leave."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._masks: dict[_Kind, int] = {}

    def mask(self, year: int) -> int:
        """Return the days of a year."""
        kind = _KINDS[year % 400]
        mask = self._masks.get(kind)
        if mask is None:
            mask = self._masks[kind] = self._work_out(kind)
        return mask

    @cached_property
    def any(self) -> bool:
        """Whether any year has such a day."""
        return any(self.mask(year) for year in kinds())

    def _work_out(self, kind: _Kind) -> int:
        rule = self._rule
        length = 365 + kind[0]
        months = month_masks(leap=kind[0])
        mask = (1 << length) - 1
        if rule.months:
            mask &= sum(months[month] for month in rule.months)
        if rule.month_days:
            mask &= _month_days(rule.month_days, months)
        if rule.year_days:
            mask &= _members(rule.year_days, (1 << length) - 1)
        if rule.weeks:
            mask &= _weeks(rule, kind)
        if rule.days:
            mask &= self._weekdays(kind[1], (1 << length) - 1, months)
        return mask

    def _weekdays(self, begins: int, year: int, months: tuple[int, ...]) -> int:
        """Return weekdays; those with a number count within months, or within the year."""
        by_month = self._rule.freq == 1 or bool(self._rule.months)
        spans = months[1:] if by_month else (year,)
        found = 0
        for weekday, nth in self._rule.days:
            days = _EVERY_SEVENTH << (weekday - begins) % 7 & year
            if not nth:
                found |= days
                continue
            for span in spans:
                within = days & span
                day = low(within) + 7 * (nth - 1) if nth > 0 else high(within) + 7 * (nth + 1)
                if day >= 0:
                    found |= within & 1 << day
        return found


def _kind(year: int) -> _Kind:
    begins = (date(year, 1, 1).toordinal() - 1) % 7
    return isleap(year), begins, isleap(year - 1), isleap(year + 1)


_KINDS = tuple(map(_kind, range(2000, 2400)))
"""The kinds of years, which come again after 400."""


@cache
def kinds() -> tuple[int, ...]:
    """Return one year of each kind."""
    return tuple({kind: year for year, kind in enumerate(_KINDS, 2000)}.values())


@cache
def month_masks(*, leap: bool) -> tuple[int, ...]:
    """Return the days of each month; number 0 is empty."""
    lengths = [length + (leap and month == 2) for month, length in enumerate(LENGTHS)]
    starts = accumulate(lengths, initial=0)
    return tuple(
        ((1 << length) - 1) << start for length, start in zip(lengths, starts, strict=False)
    )


def _month_days(numbers: tuple[int, ...], months: tuple[int, ...]) -> int:
    found = 0
    for month in months[1:]:
        found |= _members(numbers, month)
    return found


def _members(numbers: tuple[int, ...], span: int) -> int:
    """Return the days with these numbers of a span without holes; -1 is its last day."""
    start, end = low(span), high(span)
    days = [start + number - 1 if number > 0 else end + 1 + number for number in numbers]
    # 31 and -1 may be the same day, which is named once.
    return sum(1 << day for day in {*days} if start <= day <= end)


def _weeks(rule: Rule, kind: _Kind) -> int:
    """Return the days in weeks with these numbers; week 1 has at least four days in its year."""
    leap, begins, leap_before, leap_after = kind
    here, before, after = 365 + leap, 365 + leap_before, 365 + leap_after
    place = (begins - rule.wkst) % 7
    starts = [
        _first_week((place - before) % 7) - before,
        _first_week(place),
        _first_week((place + here) % 7) + here,
        _first_week((place + here + after) % 7) + here + after,
    ]
    found = 0
    for start, end in pairwise(starts):
        count = (end - start) // 7
        for number in rule.weeks:
            week = number - 1 if number > 0 else count + number
            if 0 <= week < count:
                day = start + 7 * week
                found |= 0x7F << day if day >= 0 else 0x7F >> -day
    return found


def _first_week(place: int) -> int:
    """Return the first day of week 1, when a year begins this far behind the start of a week."""
    return -place if place <= 3 else 7 - place
