"""Calendars in plain English."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from lamplighter.model.schedule import rules
from lamplighter.model.schedule.fields import (
    LastDay,
    LastWorkday,
    NearestWorkday,
    NthWeekday,
    Special,
    Values,
)
from lamplighter.model.schedule.times import bits

if TYPE_CHECKING:
    from lamplighter.model.schedule.calendar import Calendar
    from lamplighter.model.schedule.combine import Except, Union
    from lamplighter.model.schedule.cron import Cron, WallCalendar
    from lamplighter.model.schedule.days import Days
    from lamplighter.model.schedule.expression import Expression
    from lamplighter.model.schedule.interval import Interval
    from lamplighter.model.schedule.once import Once
    from lamplighter.model.schedule.rrule import RRule

MONTHS = (
    *("", "January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PLACES = ("last", "first", "second", "third", "fourth", "fifth")
_ORDINALS = {"2": "second", "3": "third"}
_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
_FEW_TIMES = 6
_FEW_DATES = 5
_ALL_HOURS = (1 << 24) - 1
_ALL_MINUTES = (1 << 60) - 1


# ── cron ─────────────────────────────────────────────────────────────────────────────────────


def cron(calendar: Cron) -> str:
    """Say when a cron expression fires."""
    found = calendar.parsed
    _, _, _, days, months, weekdays = found.fields
    when, on = _times(found), _days(days, weekdays)
    parts = [when] if on == "every day" and "every" in when else [when, on]
    if months.mask.bit_count() < 12:
        parts.append("in " + _numbers(months.mask, MONTHS))
    return _capital(" ".join(parts)) + f", {calendar.timezone} time.{_clocks(calendar)}"


def _times(found: Expression) -> str:
    seconds, minutes, hours = (values.mask for values in found.fields[:3])
    count = seconds.bit_count() * minutes.bit_count() * hours.bit_count()
    if count <= _FEW_TIMES:
        return "at " + _listed(
            f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if seconds != 1 else "")
            for hour in bits(hours)
            for minute in bits(minutes)
            for second in bits(seconds)
        )
    text = _rhythm(minutes, "minute")
    if seconds != 1:
        inner = _rhythm(seconds, "second")
        text = inner if minutes == _ALL_MINUTES else f"{inner} {_inside(text)}"
    if hours == _ALL_HOURS:
        return f"{text} past every hour" if text.startswith("at minute") else text
    return f"{text} {_inside(_rhythm(hours, 'hour', 24))}"


def _rhythm(mask: int, unit: str, size: int = 60) -> str:
    """Say `every 5 minutes`, or name the values."""
    values = [*bits(mask)]
    if len(values) == size:
        return f"every {unit}"
    step = size // len(values)
    if len(values) > 1 and values == [*range(0, size, step)] and size % step == 0:
        return f"every {step} {unit}s"
    return f"at {unit}{'s' if len(values) > 1 else ''} {_numbers(mask)}"


def _inside(text: str) -> str:
    # `every 2 hours` is a rhythm; inside another one it names hours: the first, the third, …
    if text.startswith("every ") and text.endswith("s"):
        _, step, unit = text.split()
        return f"of every {_ORDINALS.get(step, step + 'th')} {unit[:-1]}"
    return "of " + text.removeprefix("at ")


def _days(days: Values, weekdays: Values) -> str:
    every_day = days.mask.bit_count() == 31
    every_weekday = weekdays.mask & 0x7F == 0x7F
    by_day = "on " + _listed([*_day_numbers(days.mask), *map(_special, days.specials)])
    mask = weekdays.mask | (weekdays.mask & 1) << 7
    # Sunday is said where it ends the week, once.
    names = _ranges(mask & 0xFE, WEEKDAYS)
    by_weekday = "on " + _listed([*names, *map(_special, weekdays.specials)])
    if every_day and every_weekday:
        return "every day"
    if days.starred or weekdays.starred:
        if every_day or every_weekday:
            return by_weekday if every_day else by_day
        return f"{by_day} that is also {by_weekday.removeprefix('on ')}"
    return f"{by_day} or {by_weekday}"


def _day_numbers(mask: int) -> list[str]:
    found = _ranges(mask)
    return [("day " if place == 0 else "") + text for place, text in enumerate(found)]


def _special(special: Special) -> str:
    match special:
        case LastDay(0):
            return "the last day of the month"
        case LastDay(1):
            return "the day before the last of the month"
        case LastDay(before):
            return f"the day {before} days before the last of the month"
        case LastWorkday():
            return "the last weekday (Monday to Friday) of the month"
        case NearestWorkday(day):
            return f"the weekday (Monday to Friday) nearest to day {day}"
        case NthWeekday(weekday, place):
            return f"the {_PLACES[place]} {WEEKDAYS[weekday]} of the month"


# ── the others ───────────────────────────────────────────────────────────────────────────────


def rrule(calendar: RRule) -> str:
    """Say when a recurrence rule fires."""
    rule = rules.read(calendar.text)
    unit = _UNITS[rule.freq]
    every = f"Every {unit[:-1]}" if rule.interval == 1 else f"Every {rule.interval} {unit}"
    return (
        f"{every} by the rule {calendar.text} from {calendar.start.isoformat()} on, "
        f"{calendar.timezone} time.{_clocks(calendar)}"
    )


def interval(calendar: Interval) -> str:
    """Say when an interval fires."""
    return f"Every {_span(calendar.every)}, counted from {calendar.anchor.isoformat()}."


def once(calendar: Once) -> str:
    """Say when an instant is."""
    return f"Once, at {calendar.at.isoformat()}."


def days(calendar: Days) -> str:
    """Say which days are meant."""
    count = len(calendar.dates)
    names = [one.isoformat() for one in calendar.dates[:_FEW_DATES]]
    if count > _FEW_DATES:
        names.append(f"{count - _FEW_DATES} more")
    whole = f"The whole of {_listed(names)}" if names else "No day"
    return f"{whole}, {calendar.timezone} time."


def union(calendar: Union) -> str:
    """Say when any of several calendars fires."""
    return "Any of: " + " ".join(f"({n}) {text}" for n, text in _numbered(calendar.parts))


def exclusion(calendar: Except) -> str:
    """Say when a calendar fires and others do not."""
    left_out = " ".join(f"({n}) {text}" for n, text in _numbered(calendar.excluded))
    return (
        f"{calendar.base.describe()} Not at: {left_out}" if left_out else calendar.base.describe()
    )


def _numbered(parts: Iterable[Calendar]) -> Iterable[tuple[int, str]]:
    return ((number, part.describe()) for number, part in enumerate(parts, start=1))


# ── words ────────────────────────────────────────────────────────────────────────────────────


def _clocks(calendar: WallCalendar) -> str:
    """Say what happens when the clocks change, where they do."""
    if not calendar.clocks.line.last:
        return ""
    if calendar.free_running:
        return " It follows elapsed time when the clocks change."
    gap = "is left out" if calendar.gap == "skip" else "happens when the gap ends"
    overlap = "both times" if calendar.overlap == "both" else "the first time"
    return f" A time that the clocks skip {gap}; one that they show twice happens {overlap}."


def _span(every: timedelta) -> str:
    seconds = every.days * 86_400 + every.seconds
    found: list[str] = []
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        count, seconds = divmod(seconds, size)
        if count:
            found.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return _listed(found) if len(found) > 1 or not found[0].startswith("1 ") else found[0][2:]


def _numbers(mask: int, names: Sequence[str] = ()) -> str:
    return _listed(_ranges(mask, names))


def _ranges(mask: int, names: Sequence[str] = ()) -> list[str]:
    """Return the values of a mask; three and more in a row as `9 to 17`."""
    rows: list[list[int]] = []
    for value in bits(mask):
        if rows and rows[-1][-1] == value - 1:
            rows[-1].append(value)
        else:
            rows.append([value])
    found: list[str] = []
    for row in rows:
        words = [names[value] if names else str(value) for value in row]
        found += [f"{words[0]} to {words[-1]}"] if len(words) > 2 else words
    return found


def _listed(words: Iterable[str]) -> str:
    found = [*words]
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + " and " + found[-1]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
