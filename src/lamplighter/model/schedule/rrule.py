"""RRule: wall times of a zone, by the recurrence rules of iCalendar (RFC 5545)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import in_range
from lamplighter.model.schedule.cron import Gap, Overlap, WallCalendar, check_policy
from lamplighter.model.schedule.instants import FIRST, LAST, SECOND, micros, moment
from lamplighter.model.schedule.recurrence import Recurrence
from lamplighter.model.schedule.rules import Rule, read
from lamplighter.model.schedule.walls import Clocks
from lamplighter.model.schedule.zones import timeline


@dataclass(frozen=True, slots=True, init=False)
class RRule(WallCalendar):
    """The instants of a recurrence rule, as in ``RRule("FREQ=MONTHLY;BYDAY=-1FR", start=…)``.

    ``start`` is where it begins and, as the RFC says, what fills in the parts that the rule leaves
    open: its wall time in ``timezone``. Rules finer than DAILY follow elapsed time; all others
    name times of day, for which ``gap`` and ``overlap`` are as with `Cron`. COUNT counts wall times
    and may be up to 500.
    """

    text: str
    """The rule as it was given."""
    start: datetime
    """Its first instant, from which it counts."""
    timezone: str
    """IANA name of the time zone."""
    gap: Gap
    """What becomes of a time that the clocks skip."""
    overlap: Overlap
    """What becomes of a time that they show twice."""
    clocks: Clocks = field(compare=False, repr=False)
    """The same as a search over instants."""
    _first: int = field(compare=False, repr=False)
    _last: int = field(compare=False, repr=False)

    def __init__(
        self,
        text: str,
        *,
        start: datetime,
        timezone: str = "UTC",
        gap: Gap = "next_valid",
        overlap: Overlap = "first",
    ) -> None:
        walls = self._fill(text, start, timezone, gap, overlap)
        if not walls.possible:
            raise InvalidOption(
                f"the rule {shown(text)} never fires: no year has such a day",
                hint="check the days against the months, and INTERVAL against the BY… parts",
                value=text,
            )

    @classmethod
    def stored(
        cls, text: str, *, start: datetime, timezone: str, gap: Gap, overlap: Overlap
    ) -> RRule:
        """Make one that was made before: that it ever fires is not looked at again."""
        made = object.__new__(cls)
        made._fill(text, start, timezone, gap, overlap)
        return made

    def _fill(
        self, text: str, start: datetime, timezone: str, gap: Gap, overlap: Overlap
    ) -> Recurrence:
        check_policy(gap, overlap)
        line = timeline(timezone)
        first = micros(start) // SECOND
        wall = first + line.offset(first)
        if in_range(first) is None or in_range(wall) is None:
            raise InvalidOption(
                f"the start {shown(str(start))} is not within the years 1 to 9999",
                hint="give a start further from the ends of time",
                value=start,
            )
        rule, walls = _parse(text, wall)
        put = object.__setattr__
        put(self, "text", text.strip().removeprefix("RRULE:"))
        put(self, "start", moment(first * SECOND))
        put(self, "timezone", timezone)
        put(self, "gap", gap)
        put(self, "overlap", overlap)
        free = rule.sub_daily
        clocks = Clocks(line, walls, skip=free or gap == "skip", both=free or overlap == "both")
        put(self, "clocks", clocks)
        put(self, "_first", first)
        put(self, "_last", rule.until if rule.until is not None and rule.until_utc else LAST)
        return walls

    @property
    def free_running(self) -> bool:
        """Whether it follows elapsed time, whatever ``gap`` and ``overlap`` say."""
        return read(self.text).sub_daily

    def describe(self) -> str:
        from lamplighter.model.schedule.describe import rrule  # noqa: PLC0415 - see cron.py

        return rrule(self)

    def _after(self, at: int) -> int | None:
        found = self.clocks.after(max(at // SECOND + 1, self._first))
        return None if found is None or found > self._last else found * SECOND

    def _before(self, at: int) -> int | None:
        end = min(-(-at // SECOND) - 1, self._last)
        found = self.clocks.before(end) if end >= max(self._first, FIRST) else None
        return None if found is None or found < self._first else found * SECOND


@lru_cache(maxsize=256)
def _parse(text: str, wall: int) -> tuple[Rule, Recurrence]:
    rule = read(text)
    return rule, Recurrence(rule, wall)
