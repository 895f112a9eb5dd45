"""Union and Except: calendars made of calendars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar
from lamplighter.model.schedule.days import Days
from lamplighter.model.schedule.effort import spend
from lamplighter.model.schedule.instants import LAST, SECOND, moment

MOST_PARTS = 64
"""Calendars in a combination, counted to the innermost."""
PATIENCE = 1_000
"""Excluded instants in a row after which a search is given up."""


@dataclass(frozen=True, slots=True, init=False)
class Union(Calendar):
    """All instants of several calendars, each once: ``Union(a, b)`` or ``a | b``."""

    parts: tuple[Calendar, ...]
    """The calendars; an instant of any of them counts."""

    def __init__(self, *parts: Calendar) -> None:
        flat: list[Calendar] = []
        for part in parts:
            flat += part.parts if isinstance(part, Union) else [_fires_itself(part)]
        if not flat:
            raise InvalidOption(
                "a union needs a calendar", hint="give one or more, as in Union(a, b)"
            )
        object.__setattr__(self, "parts", tuple(dict.fromkeys(flat)))
        _check_size(self)

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import union  # noqa: PLC0415 - see cron.py

        return union(self)

    def _after(self, at: int) -> int | None:
        found = [instant for part in self.parts if (instant := part._after(at)) is not None]  # noqa: SLF001
        return min(found, default=None)

    def _before(self, at: int) -> int | None:
        found = [instant for part in self.parts if (instant := part._before(at)) is not None]  # noqa: SLF001
        return max(found, default=None)

    def _fires(self, at: int) -> bool:
        return any(part._fires(at) for part in self.parts)  # noqa: SLF001


@dataclass(frozen=True, slots=True, init=False)
class Except(Calendar):
    """The instants of a calendar without those of others: ``Except(a, b)`` or ``a - b``.

    `Days` leave out whole local days, other calendars the very instants at which they fire.
    """

    base: Calendar
    """The calendar whose instants count."""
    excluded: tuple[Calendar, ...]
    """Calendars whose instants or days do not."""

    def __init__(self, base: Calendar, *excluded: Calendar) -> None:
        inner = base.excluded if isinstance(base, Except) else ()
        found = base.base if isinstance(base, Except) else _fires_itself(base)
        for part in excluded:
            _is_calendar(part)
        object.__setattr__(self, "base", found)
        object.__setattr__(self, "excluded", tuple(dict.fromkeys((*inner, *excluded))))
        _check_size(self)

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import exclusion  # noqa: PLC0415 - see cron.py

        return exclusion(self)

    def _after(self, at: int) -> int | None:
        return self._search(at, (LAST + 1) * SECOND)

    def _between(self, start: int, end: int) -> Iterator[datetime]:
        # What lies behind the end is nobody's business, not even that it is all excluded.
        found = self._search(start, end)
        while found is not None:
            yield moment(found)
            found = self._search(found, end)

    def _search(self, at: int, end: int) -> int | None:
        """Return the first instant later than ``at`` and not later than ``end``."""
        for _ in range(PATIENCE + 1):
            spend()
            found = self.base._after(at)  # noqa: SLF001
            if found is None or found > end:
                return None
            days = self._days(found)
            if days is not None:
                # The instant at which they end is not theirs.
                at = days.end(found) - 1
            elif self._left_out(found):
                at = found
            else:
                return found
        raise self._given_up()

    def _before(self, at: int) -> int | None:
        for _ in range(PATIENCE + 1):
            spend()
            found = self.base._before(at)  # noqa: SLF001
            if found is None:
                return None
            days = self._days(found)
            if days is not None:
                at = days.start(found)
            elif self._left_out(found):
                at = found
            else:
                return found
        raise self._given_up()

    def _fires(self, at: int) -> bool:
        return self.base._fires(at) and self._days(at) is None and not self._left_out(at)  # noqa: SLF001

    def _days(self, at: int) -> Days | None:
        for part in self.excluded:
            if isinstance(part, Days) and part.covers(at):
                return part
        return None

    def _left_out(self, at: int) -> bool:
        return any(
            part._fires(at)  # noqa: SLF001
            for part in self.excluded
            if not isinstance(part, Days)
        )

    def _given_up(self) -> InvalidOption:
        return InvalidOption(
            f"{PATIENCE:,} instants in a row are all excluded: {shown(self.describe())}",
            hint="exclude whole days with Days, or write a calendar that names fewer instants",
            value=self,
        )


def parts(calendar: Calendar) -> Iterable[Calendar]:
    """Return the calendars of which a calendar is made, down to the innermost."""
    match calendar:
        case Union(inner):
            for part in inner:
                yield from parts(part)
        case Except(base, excluded):
            yield from parts(base)
            for part in excluded:
                yield from parts(part)
        case _:
            yield calendar


def _is_calendar(part: object) -> None:
    if not isinstance(part, Calendar):
        raise InvalidOption(
            f"{shown(part)} is a {type(part).__name__}, not a calendar",
            hint="give Cron, Interval, Once, RRule, Union, Except or, to leave out, Days",
            value=part,
        )


def _fires_itself(part: Calendar) -> Calendar:
    _is_calendar(part)
    if isinstance(part, Days):
        raise InvalidOption(
            f"{shown(part)} names days to leave out, not instants",
            hint="write Except(calendar, Days(…)), or name a time with Cron or Once",
            value=part,
        )
    return part


def _check_size(calendar: Calendar) -> None:
    count = sum(1 for _ in parts(calendar))
    if count > MOST_PARTS:
        raise InvalidOption(
            f"the calendar is made of {count} calendars, the limit is {MOST_PARTS}",
            hint="join lists of values in one expression, or use several schedules",
        )
