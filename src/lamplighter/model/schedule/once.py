"""Once: one instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar
from lamplighter.model.schedule.instants import FIRST, LAST, SECOND, micros, moment


@dataclass(frozen=True, slots=True, init=False)
class Once(Calendar):
    """One instant, to the microsecond."""

    at: datetime
    """The instant."""
    _at: int = field(compare=False, repr=False)

    def __init__(self, at: datetime) -> None:
        instant = micros(at)
        if not FIRST * SECOND <= instant < (LAST + 1) * SECOND:
            raise InvalidOption(
                f"the time {shown(str(at))} is not within the years 1 to 9999 in UTC",
                hint="give a time further from the ends of time",
                value=at,
            )
        object.__setattr__(self, "at", moment(instant))
        object.__setattr__(self, "_at", instant)

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import once  # noqa: PLC0415 - see cron.py

        return once(self)

    def _after(self, at: int) -> int | None:
        return self._at if self._at > at else None

    def _before(self, at: int) -> int | None:
        return self._at if self._at < at else None
