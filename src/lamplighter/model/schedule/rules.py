"""Reads a recurrence rule of RFC 5545, as in `FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.instants import DAY, DAY_ZERO

LONGEST = 1_000
"""Characters of a rule."""
MOST = 500
"""The largest COUNT: to know which are left, all of them have to be worked out."""

FREQUENCIES: Final = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_LIMITS = {
    "BYSECOND": (0, 59),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTHDAY": (-31, 31),
    "BYYEARDAY": (-366, 366),
    "BYWEEKNO": (-53, 53),
    "BYMONTH": (1, 12),
    "BYSETPOS": (-366, 366),
}
_NAMES = ("FREQ", "INTERVAL", "UNTIL", "COUNT", "WKST", "BYDAY", *_LIMITS)
_NUMBER = re.compile(r"[+-]?\d{1,6}", re.ASCII)
_DAY = re.compile(r"(?P<nth>[+-]?\d{1,2})?(?P<day>MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL = re.compile(r"\d{8}T\d{6}Z?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it was written. Numbers are sorted; what was not given is empty."""

    freq: int
    """The place in `FREQUENCIES`: a larger number is a finer rule."""
    interval: int
    until: int | None
    """The last second, as wall time or, when ``until_utc``, as instant."""
    until_utc: bool
    count: int | None
    wkst: int
    """The first day of a week, Monday is 0."""
    days: tuple[tuple[int, int], ...]
    """Weekdays, Monday is 0, each with its place in the month or year, or 0 for all of them."""
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    month_days: tuple[int, ...]
    year_days: tuple[int, ...]
    weeks: tuple[int, ...]
    months: tuple[int, ...]
    positions: tuple[int, ...]

    @property
    def sub_daily(self) -> bool:
        """Whether it follows hours, minutes or seconds rather than days."""
        return self.freq > FREQUENCIES.index("DAILY")

    def completed(self, start: int) -> Rule:
        """Fill in from the start, a wall time, what a rule leaves open."""
        day = date.fromordinal(start // DAY + DAY_ZERO)
        hour, minute, second = start % DAY // 3600, start // 60 % 60, start % 60
        full = replace(
            self,
            hours=self.hours or ((hour,) if self.freq < 4 else tuple(range(24))),
            minutes=self.minutes or ((minute,) if self.freq < 5 else tuple(range(60))),
            seconds=self.seconds or ((second,) if self.freq < 6 else tuple(range(60))),
        )
        if self.weeks or self.year_days or self.month_days or self.days:
            return full
        match FREQUENCIES[self.freq]:
            case "YEARLY":
                months = self.months or (day.month,)
                return replace(full, months=months, month_days=(day.day,))
            case "MONTHLY":
                return replace(full, month_days=(day.day,))
            case "WEEKLY":
                return replace(full, days=((day.weekday(), 0),))
            case _:
                return full


def read(text: object) -> Rule:
    """Read a rule, or say what is wrong with it."""
    parts = _parts(text)
    freq = parts.get("FREQ", "")
    if freq not in FREQUENCIES:
        raise _error(
            f"the rule {shown(text)} has FREQ {shown(freq)}"
            if freq
            else f"{shown(text)} lacks FREQ",
            f"begin with FREQ= and one of {', '.join(FREQUENCIES)}",
            text,
        )
    lists = {name: _list(name, parts[name]) if name in parts else () for name in _LIMITS}
    until, until_utc = _until(parts.get("UNTIL"))
    rule = Rule(
        freq=FREQUENCIES.index(freq),
        interval=_one("INTERVAL", parts.get("INTERVAL", "1"), 1, 100_000),
        until=until,
        until_utc=until_utc,
        count=_count(parts.get("COUNT")),
        wkst=_wkst(parts.get("WKST", "MO")),
        days=_days(parts["BYDAY"]) if "BYDAY" in parts else (),
        seconds=lists["BYSECOND"],
        minutes=lists["BYMINUTE"],
        hours=lists["BYHOUR"],
        month_days=lists["BYMONTHDAY"],
        year_days=lists["BYYEARDAY"],
        weeks=lists["BYWEEKNO"],
        months=lists["BYMONTH"],
        positions=lists["BYSETPOS"],
    )
    _check(rule, text)
    return rule


def _parts(text: object) -> dict[str, str]:
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise _error(
            f"the rule {shown(text)} cannot be used",
            f"give 1 to {LONGEST} characters, as in 'FREQ=WEEKLY;BYDAY=MO,FR'",
            text,
        )
    found: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").rstrip(";").split(";"):
        name, _, value = part.partition("=")
        if name in {"DTSTART", "EXDATE", "RDATE", "EXRULE"} or "\n" in part:
            raise _error(
                f"{shown(part)} is not part of a rule",
                "give the beginning as start=, more instants with |, fewer with Except",
                text,
            )
        if name not in _NAMES or not value:
            raise _error(
                f"{shown(part)} in the rule {shown(text)} cannot be understood",
                f"write NAME=VALUE with one of {', '.join(_NAMES)}",
                text,
            )
        if name in found:
            raise _error(
                f"the rule {shown(text)} has {name} twice", "list values with commas", text
            )
        found[name] = value
    return found


def _list(name: str, text: str) -> tuple[int, ...]:
    low, high = _LIMITS[name]
    found = {_one(name, part, low, high) for part in text.split(",")}
    if low < 0 and 0 in found:
        raise _error(f"{name} has 0", f"give {name} from 1 to {high}, or from -1 to {low}", text)
    return tuple(sorted(found))


def _one(name: str, text: str, low: int, high: int) -> int:
    if _NUMBER.fullmatch(text) and low <= int(text) <= high:
        return int(text)
    raise _error(f"{name} has {shown(text)}", f"give whole numbers from {low} to {high}", text)


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and int(text[:9]) > MOST:
        raise _error(
            f"the rule has COUNT={shown(text)[1:-1]}, the limit is {MOST}",
            "give the last instant as UNTIL=20301231T235959Z instead",
            text,
        )
    return _one("COUNT", text, 1, MOST)


def _wkst(text: str) -> int:
    if text in WEEKDAYS:
        return WEEKDAYS.index(text)
    raise _error(f"WKST is {shown(text)}", f"give one of {', '.join(WEEKDAYS)}", text)


def _days(text: str) -> tuple[tuple[int, int], ...]:
    found: set[tuple[int, int]] = set()
    for part in text.split(","):
        match = _DAY.fullmatch(part)
        nth = int(match["nth"] or "0") if match else 99
        if match is None or abs(nth) > 53 or (match["nth"] and not nth):
            raise _error(
                f"BYDAY has {shown(part)}",
                f"give {', '.join(WEEKDAYS)}, or 2TU for the second and -1FR for the last",
                text,
            )
        found.add((WEEKDAYS.index(match["day"]), nth))
    return tuple(sorted(found))


def _until(text: str | None) -> tuple[int | None, bool]:
    if text is None:
        return None, False
    hint = "write the date and the time, as in UNTIL=20301231T235959Z, or without Z for local time"
    if not _UNTIL.fullmatch(text):
        raise _error(f"UNTIL is {shown(text)}", hint, text)
    try:
        found = datetime.strptime(text.rstrip("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007 - see below
    except ValueError:
        raise _error(f"UNTIL is {shown(text)}, which no calendar has", hint, text) from None
    # A wall time, or an instant in UTC: both are counted from 1970 here.
    seconds = (found.toordinal() - DAY_ZERO) * DAY
    return seconds + found.hour * 3600 + found.minute * 60 + found.second, text.endswith("Z")


def _check(rule: Rule, text: object) -> None:
    """Refuse parts that do not go together."""
    name = FREQUENCIES[rule.freq]
    if rule.count is not None and rule.until is not None:
        raise _error(f"the rule {shown(text)} has COUNT and UNTIL", "give one of them", text)
    if any(nth for _, nth in rule.days):
        if rule.freq > 1 or rule.weeks:
            raise _error(
                f"the rule {shown(text)} counts weekdays of a month, but its FREQ is {name}",
                "use FREQ=MONTHLY or FREQ=YEARLY without BYWEEKNO, or weekdays without a number",
                text,
            )
        if (rule.freq == 1 or rule.months) and any(abs(nth) > 5 for _, nth in rule.days):
            raise _error(f"BYDAY in {shown(text)} is out of range", "a month has 5 of each", text)
    if rule.weeks and rule.freq != 0:
        raise _error(f"BYWEEKNO needs FREQ=YEARLY, not {name}", "use FREQ=YEARLY", text)
    if rule.positions and (rule.sub_daily or not _limits(rule)):
        raise _error(
            f"BYSETPOS in {shown(text)} has no set to choose from",
            "use it with FREQ=DAILY or coarser and another BY… part",
            text,
        )


def _limits(rule: Rule) -> bool:
    by_day = (rule.days, rule.month_days, rule.year_days, rule.weeks, rule.months)
    return any((*by_day, rule.hours, rule.minutes, rule.seconds))


def _error(cause: str, hint: str, value: object) -> InvalidOption:
    return InvalidOption(cause, hint=hint, value=value)
