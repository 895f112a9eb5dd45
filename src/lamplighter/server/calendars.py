"""When a schedule fires, as callers write it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from lamplighter.model.errors import InvalidOption, InvalidTime
from lamplighter.model.names import shown
from lamplighter.model.recurring import Spec
from lamplighter.model.schedule import Calendar, Cron, Interval, Once, RRule
from lamplighter.model.timetable import moment

Instant = Annotated[datetime, msgspec.Meta(tz=True)]

KINDS = ("cron", "every", "rrule", "at")
ZONE = ("timezone", "gap", "twice")

LONGEST = 100 * 366 * 86_400
"""Seconds of a century."""


class Times(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """When a schedule fires, and what it does about runs that overlap, were missed or fail."""

    cron: str | None = None
    """One of cron, every, rrule and at says when."""
    every: float | None = None
    """Whole seconds between runs."""
    rrule: str | None = None
    """An iCalendar rule; counts from `start`."""
    at: Instant | None = None
    """A single instant."""
    timezone: str | None = None
    """Whose clocks a cron expression or a rule follows; UTC without it."""
    gap: Literal["next_valid", "skip"] | None = None
    """What becomes of times that the clocks skip."""
    twice: Literal["first", "both"] | None = None
    """What becomes of times that the clocks show twice."""
    overlap: Literal["skip", "allow", "queue_one", "queue_all", "cancel_running"] | None = None
    """What becomes of a run while the one before it has not ended."""
    catch_up: Literal["latest", "all", "none"] | None = None
    """What is made up for of that which nobody was there to fire."""
    window: float | None = None
    """Seconds after which it is not made up for."""
    jitter: float | None = None
    """Shift it by a part of these seconds that is always the same for its id."""
    start: Instant | None = None
    end: Instant | None = None
    max_runs: int | None = None
    hold_after: int | None = None
    """Hold it after so many failed runs in a row."""
    keep_succeeded: int | None = None
    keep_failed: int | None = None
    """How many ended runs are remembered."""


def calendar_of(given: Mapping[str, Any]) -> Calendar:
    """Make the calendar that the fields of ``Times`` name."""
    named = [name for name in KINDS if given.get(name) is not None]
    if len(named) != 1:
        raise InvalidOption(
            f"of {', '.join(KINDS)} it has {' and '.join(named) or 'none'}",
            hint="say when by exactly one of them",
            value=", ".join(named) or None,
        )
    kind, zone = named[0], {name: given[name] for name in ZONE if given.get(name) is not None}
    if kind in {"every", "at"} and zone:
        raise InvalidOption(
            f"{' and '.join(zone)} was given beside {shown(kind)}, which is the same in all zones",
            hint="leave it out, or say when by cron or rrule",
            value=next(iter(zone)),
        )
    clocks = {"overlap" if name == "twice" else name: value for name, value in zone.items()}
    match kind:
        case "cron":
            return Cron(given["cron"], **clocks)
        case "rrule":
            return _rule(given, clocks)
        case "every":
            return _interval(given["every"])
        case _:
            return Once(given["at"])


def changed_calendar(spec: Spec, given: Mapping[str, Any]) -> Calendar:
    """Return the calendar after a change: what is not among the fields given stays as it was."""
    old = spec.calendar
    named = [*KINDS, *ZONE, *(["start"] if isinstance(old, RRule) else [])]
    if not any(name in given for name in named):
        return old
    fields = {**_bounds(spec), **_fields(old)}
    replaced = [name for name in KINDS if given.get(name) is not None]
    if replaced:
        # Another kind takes the place of the old one; only cron and rrule have clocks to keep.
        kept = ("start",) if replaced[0] in {"every", "at"} else ("start", *ZONE)
        fields = {name: value for name, value in fields.items() if name in kept}
    return calendar_of({**fields, **given})


def _bounds(spec: Spec) -> dict[str, Any]:
    start_ms = spec.policy.start_ms
    return {} if start_ms is None else {"start": moment(start_ms)}


def _fields(old: Calendar) -> dict[str, Any]:
    """Return a calendar as the fields that make it; one that has none was combined of several."""
    match old:
        case Cron():
            fields: dict[str, Any] = {"cron": old.expression}
        case RRule():
            fields = {"rrule": old.text, "start": old.start}
        case Interval():
            return {"every": old.every.total_seconds()}
        case Once():
            return {"at": old.at}
        case _:
            return {}
    return {**fields, "timezone": old.timezone, "gap": old.gap, "twice": old.overlap}


def _rule(given: Mapping[str, Any], clocks: Mapping[str, Any]) -> RRule:
    if given.get("start") is None:
        raise InvalidOption(
            f"the rule {shown(given['rrule'])} counts from `start`, which is not given",
            hint='give it, as in "start": "2030-01-31T12:00:00Z"',
            value=given["rrule"],
        )
    return RRule(given["rrule"], start=given["start"], **clocks)


def _interval(every: float) -> Interval:
    if every % 1 or not 1 <= every <= LONGEST:
        raise InvalidTime(
            f"every {shown(every)} is not a number of whole seconds from 1 up to a century",
            hint="give the seconds between two runs, as in 900",
            value=every,
        )
    return Interval(timedelta(seconds=int(every)))
