"""When a cron expression fires, found the slow and obvious way, to hold the calendar against.

Nothing here is shared with the package. Expressions become sets by counting, dates are judged
by writing out their month, and daylight saving is not computed at all: the oracle walks through
universal time step by step, asks the zone what the clocks on the wall show, and notices what
they show twice and what they never show.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class Plan:
    """An expression, read: which clock times it names, and on which dates."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: str
    months: frozenset[int]
    weekdays: str
    free_running: bool
    """Follows elapsed time: it fires whenever the wall shows a time it names."""
    _dates: dict[date, bool] = field(default_factory=dict[date, bool], compare=False, repr=False)

    @property
    def on_whole_minutes(self) -> bool:
        """Names no second but the first of a minute."""
        return self.seconds == frozenset({0})

    def names_date(self, day: date) -> bool:
        """Say whether it fires on this date at all."""
        if day not in self._dates:
            self._dates[day] = self._judge(day)
        return self._dates[day]

    def names(self, wall: datetime) -> bool:
        """Say whether it names this time on the wall."""
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.second in self.seconds
            and self.names_date(wall.date())
        )

    def _judge(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day = any(_is_day(item, day) for item in self.days.split(","))
        by_weekday = any(_is_weekday(item, day) for item in self.weekdays.split(","))
        if self.days.startswith("*") or self.weekdays.startswith("*"):
            return by_day and by_weekday
        return by_day or by_weekday


def read(expression: str) -> Plan:
    """Read an expression that is known to be right; it is not this side's task to find faults."""
    text = MACROS.get(expression.strip().lower(), expression).upper()
    parts = text.split()
    if len(parts) == 5:
        parts = ["0", *parts]
    second, minute, hour, day, month, weekday = parts
    return Plan(
        seconds=frozenset(_numbers(second, 0, 59)),
        minutes=frozenset(_numbers(minute, 0, 59)),
        hours=frozenset(_numbers(hour, 0, 23)),
        days=day,
        months=frozenset(_numbers(month, 1, 12, MONTHS)),
        weekdays=weekday,
        free_running=minute.startswith("*") or hour.startswith("*"),
    )


def _numbers(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    """Count out what a field of numbers, ranges and steps stands for."""
    found: set[int] = set()
    for item in text.split(","):
        body, _, step = item.partition("/")
        if body == "*":
            first, last = low, high
        elif "-" in body:
            start, end = body.split("-")
            first, last = _number(start, names), _number(end, names)
            if end == "SUN" and first > 0:
                last = 7  # FRI-SUN: the Sunday after Friday
        else:
            first = last = _number(body, names)
            if step:
                last = high
        value = first
        while value <= last:
            found.add(value)
            value += int(step or 1)
    return found


def _number(text: str, names: tuple[str, ...]) -> int:
    return names.index(text) if text in names else int(text)


def _is_day(item: str, day: date) -> bool:
    """Judge one item of the day-of-month field."""
    month = _month_of(day)
    last = month[-1].day
    working = [one.day for one in month if one.weekday() < 5]
    if item == "L":
        return day.day == last
    if item == "LW":
        return day.day == working[-1]
    if item.startswith("L-"):
        return day.day == last - int(item[2:])
    if item.endswith("W"):
        wanted = int(item[:-1])
        # A Saturday's neighbours are one day back and two on, a Sunday's two back and one on:
        # there is never a tie, and the end of the month leaves only one of them.
        return wanted <= last and day.day == min(working, key=lambda one: abs(one - wanted))
    return day.day in _numbers(item, 1, 31)


def _is_weekday(item: str, day: date) -> bool:
    """Judge one item of the day-of-week field."""
    if "#" in item:
        name, which = item.split("#")
        same = [one for one in _month_of(day) if _sunday_first(one) == _number(name, WEEKDAYS) % 7]
        return same[int(which) - 1 : int(which)] == [day]
    if item.endswith("L"):
        weekday = _number(item[:-1], WEEKDAYS) % 7
        return [one for one in _month_of(day) if _sunday_first(one) == weekday][-1] == day
    return _sunday_first(day) in {value % 7 for value in _numbers(item, 0, 7, WEEKDAYS)}


def _sunday_first(day: date) -> int:
    return (day.weekday() + 1) % 7


def _month_of(day: date) -> list[date]:
    """Write out all dates of the month that this date is in."""
    return _month_from(day.replace(day=1))


@functools.lru_cache(maxsize=1000)
def _month_from(first: date) -> list[date]:
    dates = [first + number * DAY for number in range(31)]
    return [one for one in dates if one.month == first.month]


@dataclass(frozen=True, slots=True)
class Change:
    """Clocks are set: up to `instant` they were `before` ahead of UTC, from then on `after`."""

    instant: datetime
    before: timedelta
    after: timedelta

    @property
    def size(self) -> timedelta:
        """How far the clocks jump; negative when they are set back."""
        return self.after - self.before


class Window:
    """A stretch of time in a zone, walked through once and then asked about many plans.

    `after` does not belong to it, `until` does. The walk begins `margin` earlier, for what is
    shown a second time inside may have been shown first before it.
    """

    def __init__(
        self,
        zone: tzinfo,
        after: datetime,
        until: datetime,
        *,
        step: timedelta = MINUTE,
        margin: timedelta = timedelta(hours=26),
    ) -> None:
        self.after = after
        self.until = until
        self.step = step
        self.changes: list[Change] = []
        self._shown: list[tuple[datetime, date, int, int, int, bool]] = []
        self._missing: list[tuple[datetime, list[datetime]]] = []
        self._walk(zone, (after - margin).replace(second=0, microsecond=0), margin)

    def fires(self, plan: Plan, gap: str, overlap: str) -> list[datetime]:
        """All instants at which the plan fires, in order."""
        if self.step > SECOND and not plan.on_whole_minutes:
            raise ValueError("a walk by minutes cannot answer for seconds")
        twice = plan.free_running or overlap == "both"
        seconds, minutes, hours, named = plan.seconds, plan.minutes, plan.hours, plan.names_date
        found = {
            instant
            for instant, day, hour, minute, second, again in self._shown
            if minute in minutes
            and hour in hours
            and second in seconds
            and (twice or not again)
            and named(day)
        }
        if gap == "next_valid" and not plan.free_running:
            found.update(instant for instant, walls in self._missing if any(map(plan.names, walls)))
        return sorted(instant for instant in found if self.after < instant <= self.until)

    def _walk(self, zone: tzinfo, instant: datetime, margin: timedelta) -> None:
        seen: set[datetime] = set()
        previous: datetime | None = None
        while instant <= self.until:
            wall = instant.astimezone(zone).replace(tzinfo=None)
            if self.step > SECOND and wall.second:
                raise ValueError(f"{zone} is not a whole number of minutes from UTC at {instant}")
            if previous is not None and wall - previous != self.step:
                self._note(instant, previous, wall, margin)
            again = wall in seen
            seen.add(wall)
            shown = (instant, wall.date(), wall.hour, wall.minute, wall.second, again)
            self._shown.append(shown)
            previous = wall
            instant += self.step
        # What one change skips, another may bring back.
        self._missing = [
            (when, [wall for wall in walls if wall not in seen]) for when, walls in self._missing
        ]

    def _note(
        self, instant: datetime, previous: datetime, wall: datetime, margin: timedelta
    ) -> None:
        expected = previous + self.step
        if expected - wall > margin:
            raise ValueError(f"clocks are set back by more than {margin} at {instant}")
        now = wall - instant.replace(tzinfo=None)
        self.changes.append(Change(instant, now - (wall - expected), now))
        if wall > expected:
            self._missing.append((instant, list(_steps(expected, wall, self.step))))


def _steps(first: datetime, end: datetime, step: timedelta) -> Iterable[datetime]:
    while first < end:
        yield first
        first += step


def fires_by_date(plan: Plan, first: date, last: date) -> list[datetime]:
    """All instants at which the plan fires in UTC, where no clock is ever set, date by date."""
    found: list[datetime] = []
    times = [
        timedelta(hours=hour, minutes=minute, seconds=second)
        for hour in sorted(plan.hours)
        for minute in sorted(plan.minutes)
        for second in sorted(plan.seconds)
    ]
    day = first
    while day <= last:
        if plan.names_date(day):
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            found += [midnight + time for time in times]
        day += DAY
    return found
