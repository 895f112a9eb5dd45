"""A cron expression as a set of wall times."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from lamplighter.model.counts import counted
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.effort import spend
from lamplighter.model.schedule.fields import FIELDS, Reader, Values
from lamplighter.model.schedule.instants import DAY, DAY_ZERO, FIRST, LAST
from lamplighter.model.schedule.months import LENGTHS, Months
from lamplighter.model.schedule.times import Times, high, low

LONGEST = 256
"""Characters of an expression."""

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_ON_THE_MINUTE = Values("0", 1)
_ORDER = "minute hour day-of-month month day-of-week"
_STRANGE = re.compile(r"[^ -~\t]")


class Expression:
    """The wall times that six fields name."""

    __slots__ = ("_months", "_times", "days", "fields")

    def __init__(self, fields: tuple[Values, ...]) -> None:
        self.fields = fields
        self._times = Times(fields[2].mask, fields[1].mask, fields[0].mask)
        self.days = Months(fields[3], fields[5])
        self._months = fields[4].mask

    @property
    def free_running(self) -> bool:
        """Whether it follows elapsed time: the minute or hour field starts with `*`."""
        return self.fields[1].starred or self.fields[2].starred

    @property
    def hashed(self) -> bool:
        """Whether it depends on a seed."""
        return any(values.hashed for values in self.fields)

    def possible(self) -> bool:
        """Tell whether there is any such day."""
        return self.days.exist(self._months)

    def next_wall(self, wall: int) -> int | None:
        """Return the first wall time at or after this one."""
        if wall > LAST:
            return None
        number, rest = divmod(max(wall, FIRST), DAY)
        day = date.fromordinal(number + DAY_ZERO)
        mask = self._mask(day)
        if mask >> day.day & 1:
            at = self._times.next(rest)
            if at >= 0:
                return number * DAY + at
        mask >>= day.day + 1
        if mask:
            number += 1 + low(mask)
        else:
            number = self._next_month(day.year, day.month)
            if number is None:
                return None
        return number * DAY + self._times.first

    def previous_wall(self, wall: int) -> int | None:
        """Return the last wall time at or before this one."""
        if wall < FIRST:
            return None
        number, rest = divmod(min(wall, LAST), DAY)
        day = date.fromordinal(number + DAY_ZERO)
        mask = self._mask(day)
        if mask >> day.day & 1:
            at = self._times.previous(rest)
            if at >= 0:
                return number * DAY + at
        mask &= (1 << day.day) - 1
        if mask:
            number -= day.day - high(mask)
        else:
            number = self._previous_month(day.year, day.month)
            if number is None:
                return None
        return number * DAY + self._times.last

    # ── days ─────────────────────────────────────────────────────────────────────────────────

    def _mask(self, day: date) -> int:
        """Return the days of the month in which a day lies."""
        if not self._months >> day.month & 1:
            return 0
        begins = (day.toordinal() - day.day + 1) % 7
        return self.days.mask(_length(day.year, day.month), begins)

    def _next_month(self, year: int, month: int) -> int | None:
        """Return the first day of the months behind this one, since 1970."""
        while True:
            spend()
            left = self._months >> month + 1
            if left:
                month += 1 + low(left)
            else:
                year, month = year + 1, low(self._months)
                if year > 9999:
                    return None
            first = date(year, month, 1).toordinal()
            mask = self.days.mask(_length(year, month), first % 7)
            if mask:
                return first - DAY_ZERO - 1 + low(mask)

    def _previous_month(self, year: int, month: int) -> int | None:
        """Return the last day of the months before this one, since 1970."""
        while True:
            spend()
            left = self._months & (1 << month) - 1
            if left:
                month = high(left)
            else:
                year, month = year - 1, high(self._months)
                if year < 1:
                    return None
            first = date(year, month, 1).toordinal()
            mask = self.days.mask(_length(year, month), first % 7)
            if mask:
                return first - DAY_ZERO - 1 + high(mask)


@lru_cache(maxsize=1024)
def parse(text: str, seed: str) -> Expression:
    """Read an expression, or say what is wrong with it and where."""
    plain = _plain(text)
    parts = plain.split()
    if len(parts) not in {5, 6}:
        raise InvalidOption(
            f"the cron expression {shown(text)} has {counted(len(parts), 'field')}"
            if parts
            else "the cron expression is empty",
            hint=f"give five fields, {_ORDER}, or six with the second first, as in '30 2 * * *'",
            value=text,
        )
    kinds = FIELDS[-len(parts) :]
    read = tuple(Reader(kinds[i], plain, i, seed).read(part) for i, part in enumerate(parts))
    found = Expression(read if len(parts) == 6 else (_ON_THE_MINUTE, *read))
    if not found.possible():
        raise InvalidOption(
            f"the cron expression {shown(text)} never fires: no such day exists in any year",
            hint="check the day of month against the months; L is the last day of a month",
            value=text,
        )
    return found


def _plain(text: str) -> str:
    """Return the fields in capital letters; a macro gives those it stands for."""
    if len(text) > LONGEST:
        raise InvalidOption(
            f"the cron expression {shown(text)} has {len(text)} characters",
            hint=f"give at most {LONGEST}; several expressions can be joined with |",
            value=text,
        )
    strange = _STRANGE.search(text)
    if strange is not None:
        raise InvalidOption(
            f"the cron expression {shown(text)} has {shown(strange[0])} "
            f"(U+{ord(strange[0]):04X}) at character {strange.start() + 1}",
            hint="write it with plain letters, digits, spaces and the signs * , - / # @",
            value=text,
        )
    if "@" in text:
        return _macro(text)
    return text.strip(" \t").upper()


def _macro(text: str) -> str:
    name = text.strip(" \t").lower()
    found = MACROS.get(name)
    if found is not None:
        return found
    if name.startswith("@every"):
        hint = "distances are intervals: use Interval(timedelta(minutes=5))"
    elif name == "@reboot":
        hint = "there is no start of a fleet of workers; submit a job when your program starts"
    else:
        hint = f"use {', '.join(MACROS)}, or five fields"
    raise InvalidOption(f"{shown(text)} is not a cron expression", hint=hint, value=text)


def _length(year: int, month: int) -> int:
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return 29
    return LENGTHS[month]
