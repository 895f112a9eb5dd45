"""The zones of the tzdata package, read from its files: which differ, and when clocks are set.

Changes are found by walking through time. What the files list is read beside it, without
`zoneinfo`: it tells which zones are alike, and a change that one of the two misses shows itself.
"""

from __future__ import annotations

import functools
import struct
from datetime import UTC, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

from tests.calendar.oracle import DAY, SECOND, Change

SINCE = datetime(2010, 1, 1, tzinfo=UTC)
UNTIL = datetime(2038, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Among zones with one table since 2010, the name that people know speaks for all.
KNOWN = frozenset(
    {
        "Africa/Cairo",
        "Africa/Casablanca",
        "America/Los_Angeles",
        "America/New_York",
        "America/Santiago",
        "America/Sao_Paulo",
        "Antarctica/Troll",
        "Asia/Beirut",
        "Asia/Kolkata",
        "Asia/Tokyo",
        "Australia/Lord_Howe",
        "Australia/Sydney",
        "Etc/UTC",
        "Europe/Berlin",
        "Europe/London",
        "Pacific/Apia",
        "Pacific/Auckland",
        "Pacific/Chatham",
    }
)


@functools.cache
def zone(name: str) -> ZoneInfo:
    """Load a zone from the package, whatever the machine has."""
    with _file(name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@functools.cache
def names() -> tuple[str, ...]:
    """All names that the package has."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return tuple(sorted(listed.split()))


@functools.cache
def listed(name: str) -> tuple[Change, ...]:
    """Every setting of the clocks that the zone's file lists; a rule may go on where it ends."""
    moments, offsets, _ = _read(name)
    found: list[Change] = []
    before = offsets[0]
    for moment, after in zip(moments, offsets[1:], strict=True):
        if after != before:
            instant = EPOCH + timedelta(seconds=moment)
            found.append(Change(instant, timedelta(seconds=before), timedelta(seconds=after)))
        before = after
    return tuple(found)


def changes(name: str) -> tuple[Change, ...]:
    """Every setting of the clocks from 2010 to 2037."""
    return _found(_like()[name], SINCE, UNTIL)


def changes_in(name: str, year: int) -> tuple[Change, ...]:
    """Every setting of the clocks in one year, but for its last days."""
    return _found(name, datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 29, tzinfo=UTC))


@functools.cache
def representatives() -> tuple[str, ...]:
    """One name for each different table since 2010."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for name in names():
        key = (SINCE.astimezone(zone(name)).utcoffset(), changes(name))
        groups.setdefault(key, []).append(name)
    return tuple(sorted(min(group, key=_rank) for group in groups.values()))


@functools.cache
def _like() -> dict[str, str]:
    """For each name one whose file says the same about the time since 2010."""
    first: dict[tuple[object, ...], str] = {}
    like: dict[str, str] = {}
    for name in names():
        recent = tuple(one for one in listed(name) if one.instant >= SINCE)
        key = (SINCE.astimezone(zone(name)).utcoffset(), recent, _read(name)[2])
        like[name] = first.setdefault(key, name)
    return like


@functools.cache
def _found(name: str, since: datetime, until: datetime) -> tuple[Change, ...]:
    """Walk from day to day; where the offset is another, look for the second it changed."""
    place = zone(name)
    found: list[Change] = []
    day, before = since, _offset(place, since)
    while day < until:
        after = _offset(place, day + DAY)
        if after != before:
            low, high = day, day + DAY
            while high - low > SECOND:
                middle = low + (high - low) // SECOND // 2 * SECOND
                if _offset(place, middle) == before:
                    low = middle
                else:
                    high = middle
            found.append(Change(high, before, after))
        day, before = day + DAY, after
    return tuple(found)


def _offset(place: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(place).utcoffset() or timedelta()


def _rank(name: str) -> tuple[bool, bool, str]:
    return name not in KNOWN, "/" not in name, name


def _file(name: str):
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))


@functools.cache
def _read(name: str) -> tuple[list[int], list[int], bytes]:
    """Read a file's 64-bit part: the moments, the offsets before, between and after, the rule."""
    data = _file(name).read_bytes()
    header = struct.Struct(">4s c 15x 6l")
    _, _, utc, standard, leap, moments, types, letters = header.unpack_from(data)
    start = header.size + moments * 5 + types * 6 + letters + leap * 8 + standard + utc
    magic, _, _, _, _, moments, types, _ = header.unpack_from(data, start)
    if magic != b"TZif":
        raise ValueError(f"{name} has no 64-bit part")
    start += header.size
    instants = struct.unpack_from(f">{moments}q", data, start)
    kinds = struct.unpack_from(f">{moments}B", data, start + moments * 8)
    start += moments * 9
    offsets = [struct.unpack_from(">lBB", data, start + 6 * kind)[0] for kind in range(types)]
    rule = data.rstrip(b"\n").rpartition(b"\n")[2]
    # What a clock showed before the first moment is the first type.
    return list(instants), [offsets[0], *(offsets[kind] for kind in kinds)], rule
