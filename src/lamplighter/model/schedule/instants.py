"""Instants as whole numbers: what the calendar counts with, and how it meets datetimes.

Inside this package an instant is a number of microseconds since 1970 in UTC, and a wall time a
number of seconds since 1970 as the clock on the wall shows them. Numbers have no ends at which
they overflow, and no zone that could be forgotten.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
DAY = 86_400
CYCLE = 146_097 * DAY
"""400 years: after that, months, leap days and days of the week come in the same order again."""
FIRST = -62_135_596_800
"""0001-01-01 00:00:00, the first second a datetime knows."""
LAST = 253_402_300_799
"""9999-12-31 23:59:59, the last one."""
DAY_ZERO = 719_163
"""The ordinal of 1970-01-01."""


def micros(t: datetime) -> int:
    """Return an aware datetime as microseconds since 1970; refuse one that is naive."""
    try:
        since = t - EPOCH
        return (since.days * DAY + since.seconds) * SECOND + since.microseconds
    except (TypeError, AttributeError):
        raise naive(t) from None


def moment(at: int) -> datetime:
    """Return microseconds since 1970 as a datetime in UTC."""
    seconds, rest = divmod(at, SECOND)
    return EPOCH + timedelta(0, seconds, rest)


def naive(t: object) -> InvalidOption:
    """Say that this cannot be an instant."""
    if isinstance(t, datetime):
        return InvalidOption(
            f"the time {shown(str(t))} has no time zone, so it could be any of many instants",
            hint="give an aware datetime, as in datetime(2030, 1, 31, 12, tzinfo=UTC), or make "
            "one of it with t.replace(tzinfo=ZoneInfo('Europe/Berlin'))",
            value=t,
        )
    return InvalidOption(
        f"{shown(t)} is a {type(t).__name__}, not an instant",
        hint="give an aware datetime, as in datetime(2030, 1, 31, 12, tzinfo=UTC)",
        value=t,
    )
