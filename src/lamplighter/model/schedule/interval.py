"""Interval: every so many seconds, whatever the clocks on the wall do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar, in_range
from lamplighter.model.schedule.instants import (
    DAY,
    EPOCH,
    FIRST,
    LAST,
    SECOND,
    micros,
    moment,
)


@dataclass(frozen=True, slots=True, init=False)
class Interval(Calendar):
    """Instants that are a fixed time apart, as far from ``anchor`` as whole intervals lead.

    ``every`` is a timedelta or a number of seconds, whole in either case. The anchor gives the
    phase, not a beginning: there are instants before it too.
    """

    every: timedelta
    """Time between two instants."""
    anchor: datetime
    """An instant from which it counts, both ways."""
    _step: int = field(compare=False, repr=False)
    _phase: int = field(compare=False, repr=False)

    def __init__(self, every: timedelta | float, *, anchor: datetime = EPOCH) -> None:
        step = _whole(every)
        at = micros(anchor)
        if at % SECOND:
            raise InvalidOption(
                f"the anchor {shown(str(anchor))} lies between two seconds",
                hint="give a whole second: anchor.replace(microsecond=0)",
                value=anchor,
            )
        phase = at // SECOND
        if in_range(phase) is None:
            raise InvalidOption(
                f"the anchor {shown(str(anchor))} is not within the years 1 to 9999 in UTC",
                hint="give an anchor further from the ends of time",
                value=anchor,
            )
        put = object.__setattr__
        put(self, "every", timedelta(seconds=step))
        put(self, "anchor", moment(at))
        put(self, "_step", step)
        put(self, "_phase", phase % step)

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import interval  # noqa: PLC0415 - see cron.py

        return interval(self)

    def _after(self, at: int) -> int | None:
        start = max(at // SECOND + 1, FIRST)
        return in_range(start + (self._phase - start) % self._step)

    def _before(self, at: int) -> int | None:
        end = min(-(-at // SECOND) - 1, LAST)
        return in_range(end - (end - self._phase) % self._step)


def _whole(every: object) -> int:
    hint = "give a timedelta or a number of whole seconds, as in Interval(timedelta(minutes=5))"
    if isinstance(every, timedelta):
        seconds, rest = every.days * DAY + every.seconds, every.microseconds
    elif isinstance(every, (int, float)) and not isinstance(every, bool) and every % 1 == 0:
        seconds, rest = int(every), 0
    else:
        raise InvalidOption(f"the interval {shown(every)} cannot be used", hint=hint, value=every)
    if rest or not 1 <= seconds <= timedelta.max.days * DAY:
        raise InvalidOption(
            f"the interval {shown(every)} is not a number of whole seconds of 1 or more",
            hint=hint,
            value=every,
        )
    return seconds
