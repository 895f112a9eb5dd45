"""Reads the files of the time zone database (RFC 8536) into a `Timeline`.

`zoneinfo` reads them too, but it does not tell when the clocks change, and a calendar has to know:
guessing changes by looking at the offset every so often misses those that are undone soon after.
"""

from __future__ import annotations

import re
import struct
from calendar import isleap
from collections.abc import Callable
from datetime import date

from lamplighter.model.schedule.instants import DAY, DAY_ZERO, FIRST
from lamplighter.model.schedule.timeline import Timeline

_HEADER = struct.Struct(">4s1s15x6l")
_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_TIME = r"[+-]?\d{1,3}(?::\d{2}(?::\d{2})?)?"
_DATE = r"(?:M\d{1,2}\.\d\.\d|J\d{1,3}|\d{1,3})"
_FOOTER = re.compile(
    rf"{_NAME}(?P<std>{_TIME})"
    rf"(?:{_NAME}(?P<dst>{_TIME})?,"
    rf"(?P<start>{_DATE})(?:/(?P<start_at>{_TIME}))?,"
    rf"(?P<end>{_DATE})(?:/(?P<end_at>{_TIME}))?)?"
)

_Changes = list[tuple[int, int]]
"""Instants in seconds, each with the offset that holds from then on."""


def read(data: bytes) -> Timeline:
    """Return all changes of a zone's clocks, those of its rule for the future included."""
    counts = _HEADER.unpack_from(data)[2:]
    # The first half of the file has 32-bit numbers for old programs; ours are in the second.
    start = _HEADER.size + _size(counts, 4)
    utc, std, leap, times, types, chars = _HEADER.unpack_from(data, start)[2:]
    at = start + _HEADER.size
    instants: tuple[int, ...] = struct.unpack_from(f">{times}q", data, at)
    kinds: tuple[int, ...] = struct.unpack_from(f">{times}B", data, at + 8 * times)
    table = at + 9 * times
    offsets: list[int] = []
    for kind in range(types):
        offsets += struct.unpack_from(">l", data, table + 6 * kind)
    footer = data[start + _HEADER.size + _size((utc, std, leap, times, types, chars), 8) :]
    changes = [(instant, offsets[kind]) for instant, kind in zip(instants, kinds, strict=True)]
    return _timeline(offsets[0], changes, footer.strip(b"\n").decode("ascii"))


def _size(counts: tuple[int, ...], width: int) -> int:
    utc, std, leap, times, types, chars = counts
    return times * (width + 1) + types * 6 + chars + leap * (width + 4) + std + utc


def _timeline(before: int, changes: _Changes, footer: str) -> Timeline:
    fold = None
    rule = _rule(footer)
    if rule is not None:
        last, _ = changes[-1] if changes else (FIRST, 0)
        year = date.fromordinal(max(last, FIRST) // DAY + DAY_ZERO).year
        for each in range(year, year + 405):
            changes += [change for change in rule(each) if change[0] > last]
        # By then the rule alone holds, so what follows repeats itself every 400 years.
        fold = (date(year + 2, 1, 1).toordinal() - DAY_ZERO) * DAY
    real: _Changes = []
    for instant, offset in changes:
        if instant <= FIRST - DAY:
            before = offset
        elif offset != (real[-1][1] if real else before):
            real.append((instant, offset))
    return Timeline(before, real, fold)


# ── the rule for the future ──────────────────────────────────────────────────────────────────


def _rule(footer: str) -> Callable[[int], _Changes] | None:
    """Read `CET-1CEST,M3.5.0,M10.5.0/3`: gives the changes of a year, in order."""
    found = _FOOTER.fullmatch(footer)
    if found is None or found["start"] is None:
        return None
    # Offsets of these rules count to the west.
    std = -_seconds(found["std"])
    dst = std + 3600 if found["dst"] is None else -_seconds(found["dst"])
    start, end = _day(found["start"]), _day(found["end"])
    start_at, end_at = _seconds(found["start_at"] or "2"), _seconds(found["end_at"] or "2")

    known: dict[tuple[int, bool], _Changes] = {}

    def changes(year: int) -> _Changes:
        first = (date(year, 1, 1).toordinal() - DAY_ZERO) * DAY
        # There are 14 kinds of years, and in each kind the changes are at the same places.
        kind = first // DAY % 7, isleap(year)
        places = known.get(kind)
        if places is None:
            begins = (start(year) * DAY + start_at - std - first, dst)
            ends = (end(year) * DAY + end_at - dst - first, std)
            places = known[kind] = sorted((begins, ends))
        return [(first + place, offset) for place, offset in places]

    return changes


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    return sign * sum(part * size for part, size in zip(parts, (3600, 60, 1), strict=False))


def _day(text: str) -> Callable[[int], int]:
    """Read the date of a change: gives its day since 1970 for a year."""
    if text.startswith("M"):
        month, week, weekday = (int(part) for part in text[1:].split("."))
        return lambda year: _nth(year, month, week, weekday)
    if text.startswith("J"):
        # Counted from 1 as if there were no 29 February.
        in_2001 = date.fromordinal(date(2001, 1, 1).toordinal() + int(text[1:]) - 1)
        return lambda year: in_2001.replace(year=year).toordinal() - DAY_ZERO
    days = int(text)
    return lambda year: date(year, 1, 1).toordinal() - DAY_ZERO + days


def _nth(year: int, month: int, week: int, weekday: int) -> int:
    first = date(year, month, 1).toordinal()
    # Ordinals count from a Monday; these weekdays count from Sunday.
    day = first + (weekday - first) % 7 + 7 * (week - 1)
    following = date(year + month // 12, month % 12 + 1, 1).toordinal()
    return (day if day < following else day - 7) - DAY_ZERO
