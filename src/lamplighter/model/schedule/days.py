"""Days: whole local days, for leaving them out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar, in_range
from lamplighter.model.schedule.effort import spend
from lamplighter.model.schedule.instants import DAY, DAY_ZERO, SECOND
from lamplighter.model.schedule.timeline import Timeline
from lamplighter.model.schedule.zones import timeline

LIMIT = 10_000
"""Dates in one value: a few hundred years of holidays."""


@dataclass(frozen=True, slots=True, init=False)
class Days(Calendar):
    """Local dates, each from its midnight to the next: `Except(calendar, Days([date(…), …]))`.

    As a calendar of its own it has one instant for each date: the first that the clocks of the
    zone show on it. A date they skip has none.
    """

    dates: tuple[date, ...]
    """The days, in order."""
    timezone: str
    """IANA name of the time zone."""
    _line: Timeline = field(compare=False, repr=False)
    _runs: tuple[tuple[int, int], ...] = field(compare=False, repr=False)
    """Days since 1970: the first of each row of dates, and the first behind it."""

    def __init__(self, dates: Iterable[date], timezone: str = "UTC") -> None:
        found = _dates(dates)
        put = object.__setattr__
        put(self, "dates", found)
        put(self, "timezone", timezone)
        put(self, "_line", timeline(timezone))
        put(self, "_runs", _runs([one.toordinal() - DAY_ZERO for one in found]))

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import days  # noqa: PLC0415 - see cron.py

        return days(self)

    def covers(self, at: int) -> bool:
        """Tell whether an instant lies on one of the days."""
        return self._run(at // SECOND) is not None

    def end(self, at: int) -> int:
        """Return the first instant, in microseconds, behind the days on which ``at`` lies."""
        second = at // SECOND
        low, high = self._covering(second)
        line = self._line
        while True:
            i, shift = line.stretch(second)
            found = high - line.offsets[i]
            if i == line.last or found < line.times[i] + shift:
                return found * SECOND
            # The clocks change before the days are over: into another day, or to stay longer.
            second = line.times[i] + shift
            if not low <= second + line.offsets[i + 1] < high:
                return second * SECOND

    def start(self, at: int) -> int:
        """Return the first instant, in microseconds, of the days on which ``at`` lies."""
        second = at // SECOND
        low, high = self._covering(second)
        line = self._line
        while True:
            i, shift = line.stretch(second)
            found = low - line.offsets[i]
            if i == 0 or found >= line.times[i - 1] + shift:
                return found * SECOND
            second = line.times[i - 1] + shift - 1
            if not low <= second + line.offsets[i - 1] < high:
                return (second + 1) * SECOND

    def _covering(self, second: int) -> tuple[int, int]:
        """Return the wall times between which the days around a second lie."""
        run = self._run(second)
        if run is None:
            raise AssertionError(f"second {second} lies on none of the days")
        return run[0] * DAY, run[1] * DAY

    def _run(self, second: int) -> tuple[int, int] | None:
        day = (second + self._line.offset(second)) // DAY
        place = bisect_right(self._runs, day, key=lambda run: run[0])
        if place and day < self._runs[place - 1][1]:
            return self._runs[place - 1]
        return None

    # ── as a calendar ────────────────────────────────────────────────────────────────────────

    def _after(self, at: int) -> int | None:
        spend(len(self.dates))
        return min((start for start in self._starts() if start > at), default=None)

    def _before(self, at: int) -> int | None:
        spend(len(self.dates))
        return max((start for start in self._starts() if start < at), default=None)

    def _starts(self) -> Iterable[int]:
        line = self._line
        for one in self.dates:
            wall = (one.toordinal() - DAY_ZERO) * DAY
            i, shift = line.place(wall)
            at = wall - line.offsets[i]
            if i < line.last and at >= line.times[i] + shift:
                at = line.times[i] + shift
                if at + line.offsets[i + 1] >= wall + DAY:
                    continue
            found = in_range(at)
            if found is not None:
                yield found


def _dates(dates: Iterable[date]) -> tuple[date, ...]:
    hint = "give dates, as in Days([date(2030, 12, 25)])"
    if isinstance(dates, (str, bytes, date)):
        raise InvalidOption(f"{shown(dates)} is not a list of dates", hint=hint, value=dates)
    found: set[date] = set()
    for one in dates:
        if isinstance(one, datetime) or not isinstance(one, date):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidOption(f"{shown(one)} is not a date", hint=hint, value=one)
        found.add(one)
        if len(found) > LIMIT:
            raise InvalidOption(
                f"there are more than {LIMIT:,} dates", hint="give those of a few years at a time"
            )
    return tuple(sorted(found))


def _runs(days: list[int]) -> tuple[tuple[int, int], ...]:
    """Join days that follow each other."""
    runs: list[tuple[int, int]] = []
    for day in days:
        if runs and runs[-1][1] == day:
            runs[-1] = runs[-1][0], day + 1
        else:
            runs.append((day, day + 1))
    return tuple(runs)
