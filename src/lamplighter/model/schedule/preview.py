"""What will happen: the next instants of a calendar, and what the clocks will do to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.model.schedule.calendar import Calendar
from lamplighter.model.schedule.combine import Except, Union
from lamplighter.model.schedule.cron import WallCalendar
from lamplighter.model.schedule.effort import STEPS, bounded, spend
from lamplighter.model.schedule.instants import EPOCH, SECOND, micros, moment
from lamplighter.model.schedule.walls import Change, Clocks, Mark
from lamplighter.model.schedule.zones import zone

LIMIT = 1_000
"""Instants in one preview."""
_CHANGES = 200
"""How many changes of the clocks are looked at, ahead: about a hundred years."""

Effect = Literal["skipped", "moved", "doubled", "first only"]
"""What a change does: times do not happen, happen at its end, happen twice, or once of two."""


@dataclass(frozen=True, slots=True)
class Preview:
    """One instant of a calendar."""

    utc: datetime
    """The instant in UTC."""
    local: datetime
    """The same instant in the calendar's time zone."""
    mark: Mark | None
    """What a change of the clocks had to do with it."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A change of the clocks that touches a calendar."""

    at: datetime
    """When the clocks change, in UTC."""
    timezone: str
    effect: Effect
    wall: datetime
    """The first time of the calendar that is skipped or doubled: as the clocks would show it."""
    low: datetime
    """The first time that the clocks skip or show twice."""
    high: datetime
    """The first time behind those."""


def preview(calendar: Calendar, after: datetime, count: int) -> list[Preview]:
    """Return the next instants of a calendar, ``count`` of them if there are as many."""
    if type(count) is not int or not 1 <= count <= LIMIT:
        raise InvalidOption(
            f"a preview of {shown(count)} instants is not possible",
            hint=f"give a count from 1 to {LIMIT}",
            value=count,
        )
    with bounded(STEPS + 4 * count):
        return _preview(calendar, after, count)


def _preview(calendar: Calendar, after: datetime, count: int) -> list[Preview]:
    found: list[Preview] = []
    parts = _firing(calendar)
    at = calendar.next_after(after)
    while at is not None and len(found) < count:
        source = parts[0] if len(parts) == 1 else next(part for part in parts if part.fires_at(at))
        if isinstance(source, WallCalendar):
            local = at.astimezone(zone(source.timezone))
            found.append(Preview(at, local, source.clocks.mark(micros(at) // SECOND)))
        else:
            found.append(Preview(at, at, None))
        at = calendar.next_after(at) if len(found) < count else None
    return found


def next_touch(calendar: Calendar, after: datetime) -> Touch | None:
    """Return the next change of the clocks that touches a calendar, within about 100 years."""
    with bounded():
        found = [
            touch
            for part in _firing(calendar)
            if isinstance(part, WallCalendar)
            and (touch := _touch(part, micros(after) // SECOND)) is not None
        ]
    return min(found, key=lambda touch: touch.at, default=None)


def _touch(calendar: WallCalendar, after: int) -> Touch | None:
    clocks = calendar.clocks
    following: int | None = None
    for change in clocks.changes(after, _CHANGES):
        # What comes first behind an earlier change is known: most changes need no search.
        if following is None or following < change.low:
            spend()
            following = clocks.pattern.next_wall(change.low)
        if following is None:
            return None
        wall = following
        if wall < change.high:
            return Touch(
                at=moment(change.at * SECOND),
                timezone=calendar.timezone,
                effect=_effect(clocks, change),
                wall=_shown(wall),
                low=_shown(change.low),
                high=_shown(change.high),
            )
    return None


def _effect(clocks: Clocks, change: Change) -> Effect:
    if change.gap:
        return "skipped" if clocks.skip else "moved"
    return "doubled" if clocks.both else "first only"


def _shown(wall: int) -> datetime:
    """Return a wall time as a datetime without a zone, since it may not exist in it."""
    return EPOCH.replace(tzinfo=None) + timedelta(seconds=wall)


def _firing(calendar: Calendar) -> list[Calendar]:
    """Return the innermost calendars that add instants."""
    match calendar:
        case Union(parts):
            return [inner for part in parts for inner in _firing(part)]
        case Except(base, _):
            return _firing(base)
        case _:
            return [calendar]
