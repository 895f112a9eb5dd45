"""Who lives where in the simulated year, and when their days begin there.

The days are found by walking through the year with `zoneinfo`, quarter of an hour by quarter, and
looking at the date on the wall. Nothing of the calendar that is under test has a part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from tests.calendar.zones import zone

# Forty, with every kind of offset and of change. At the beginning those whose midnight does not
# exist on one day of that year, because clocks are put forward then.
# fmt: off
WITHOUT_A_MIDNIGHT = (
    "Africa/Cairo", "America/Asuncion", "America/Havana", "America/Santiago",
    "America/Scoresbysund", "Asia/Beirut", "Atlantic/Azores",
)
ZONES = (
    *WITHOUT_A_MIDNIGHT,
    "Pacific/Kiritimati", "Pacific/Apia", "Pacific/Chatham", "Pacific/Auckland", "Pacific/Norfolk",
    "Australia/Lord_Howe", "Australia/Sydney", "Australia/Adelaide", "Asia/Tokyo",
    "Australia/Eucla", "Asia/Shanghai", "Asia/Yangon", "Asia/Dhaka", "Asia/Kathmandu",
    "Asia/Kolkata", "Asia/Kabul", "Asia/Dubai", "Asia/Tehran", "Africa/Nairobi", "Europe/Istanbul",
    "Europe/Berlin", "Africa/Casablanca", "Europe/London", "UTC", "Antarctica/Troll",
    "America/Noronha", "America/Sao_Paulo", "America/St_Johns", "America/New_York",
    "America/Denver", "America/Los_Angeles", "Pacific/Marquesas", "Pacific/Pago_Pago",
)
# fmt: on

START = datetime(2023, 1, 1, 0, 7, tzinfo=UTC)
"""A year whose clocks no government changes any more; no day begins at this moment anywhere."""
END = START + timedelta(days=365)

_STEP = timedelta(minutes=15)
_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Somebody who is billed by the calendar on the wall at home."""

    number: int

    @property
    def name(self) -> str:
        return f"tenant-{self.number:05}"

    @property
    def zone(self) -> str:
        return ZONES[self.number % len(ZONES)]


@cache
def beginnings(name: str, *, monthly: bool = False) -> tuple[int, ...]:
    """Give when each day of the year begins in a zone, or each month, in milliseconds since 1970.

    A day begins when the wall shows its date for the first time, whatever hour it shows with it.
    """
    if monthly:
        return tuple(at for at in beginnings(name) if _wall(name, at).day == 1)
    place = zone(name)
    found: list[int] = []
    at, newest = START, START.astimezone(place).date()
    while at < END:
        before, at = at, at + _STEP
        if at.astimezone(place).date() > newest:
            newest = at.astimezone(place).date()
            began = _first_second(before, at, place)
            if began <= END:
                found.append((began - _EPOCH) // timedelta(milliseconds=1))
    return tuple(found)


def lack_a_midnight(name: str) -> list[str]:
    """Give the days of the year that begin in a zone at another time than 00:00."""
    walls = [_wall(name, at) for at in beginnings(name)]
    return [str(wall.date()) for wall in walls if wall.time() != time()]


def _wall(name: str, at_ms: int) -> datetime:
    return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(zone(name))


def _first_second(low: datetime, high: datetime, place: ZoneInfo) -> datetime:
    """Find the second from which on the wall shows the date that it shows at ``high``."""
    day = high.astimezone(place).date()
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        low, high = (low, middle) if middle.astimezone(place).date() >= day else (middle, high)
    return high
