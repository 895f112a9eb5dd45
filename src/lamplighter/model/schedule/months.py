"""Which days of a month an expression names.

A month is known by its length and by the weekday it begins with, so there are 28 different ones,
and what an expression means in each is worked out once.
"""

from __future__ import annotations

from lamplighter.model.schedule.fields import (
    LastDay,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    Special,
    Values,
)

LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LONG = sum(1 << month for month, length in enumerate(LENGTHS) if length == 31)
_SHORT = sum(1 << month for month, length in enumerate(LENGTHS) if length == 30)
_FEBRUARY = 1 << 2
_SATURDAY = 6
_SUNDAY = 0


class Months:
    """The days that a day-of-month and a day-of-week field name together.

    Either is enough when neither field starts with `*`; otherwise a day has to be in both.
    """

    __slots__ = ("_days", "_masks", "_weekdays")

    def __init__(self, days: Values, weekdays: Values) -> None:
        self._days = days
        self._weekdays = weekdays
        self._masks = [-1] * 28

    def mask(self, length: int, begins: int) -> int:
        """Return the days of a month of this length that begins on this weekday (Sunday is 0).

        Bit n stands for day n.
        """
        place = (length - 28) * 7 + begins
        mask = self._masks[place]
        if mask < 0:
            mask = self._masks[place] = self._work_out(length, begins)
        return mask

    def exist(self, months: int) -> bool:
        """Tell whether any of these months ever has such a day.

        Each month begins on each weekday, in leap years and in others, within 400 years.
        """
        lengths: list[int] = []
        if months & _LONG:
            lengths.append(31)
        if months & _SHORT:
            lengths.append(30)
        if months & _FEBRUARY:
            lengths += (29, 28)
        for length in lengths:
            for begins in range(7):
                if self.mask(length, begins):
                    return True
        return False

    def _work_out(self, length: int, begins: int) -> int:
        whole = (1 << length + 1) - 2
        days = self._days.mask
        for special in self._days.specials:
            days |= _special(special, length, begins)
        weekdays = 0
        for weekday in range(8):
            if self._weekdays.mask >> weekday & 1:
                weekdays |= every(weekday % 7, begins)
        for special in self._weekdays.specials:
            weekdays |= _special(special, length, begins)
        if self._days.starred or self._weekdays.starred:
            return days & weekdays & whole
        return (days | weekdays) & whole


def every(weekday: int, begins: int) -> int:
    """Return the days on which a weekday falls, those behind the end of the month included."""
    first = 1 + (weekday - begins) % 7
    return 1 << first | 1 << first + 7 | 1 << first + 14 | 1 << first + 21 | 1 << first + 28


def _special(special: Special, length: int, begins: int) -> int:
    match special:
        case LastDay(before):
            return 1 << length - before if before < length else 0
        case LastWorkday():
            return 1 << _workday(length, length, begins)
        case NearestWorkday(day):
            return 1 << _workday(day, length, begins) if day <= length else 0
        case NthWeekday(weekday, place):
            days = every(weekday, begins) & (1 << length + 1) - 1
            if not place:
                return 1 << days.bit_length() - 1
            return days & 1 << 1 + (weekday - begins) % 7 + 7 * (place - 1)


def _workday(day: int, length: int, begins: int) -> int:
    """Return the day from Monday to Friday nearest to a day, without leaving the month."""
    weekday = (begins + day - 1) % 7
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day
