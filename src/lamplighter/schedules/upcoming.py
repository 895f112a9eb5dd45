"""What a schedule will do, stored or not."""

from __future__ import annotations

from datetime import datetime

from lamplighter import runtime
from lamplighter.model import schedule as calendars
from lamplighter.model.recurring import Spec
from lamplighter.model.schedule import Preview, Touch
from lamplighter.model.timetable import moment
from lamplighter.schedules.making import instant


def upcoming(
    spec: Spec, count: int, *, after: datetime | None = None, fired: int = 0
) -> list[Preview]:
    """Return the next occurrences, within start, end and the number of runs that are left."""
    policy = spec.policy
    found = calendars.preview(spec.calendar, _begin(spec, after), count)
    if policy.max_runs is not None:
        found = found[: max(0, policy.max_runs - fired)]
    if policy.end_ms is None:
        return found
    end = moment(policy.end_ms)
    return [run for run in found if run.utc <= end]


def next_touch(spec: Spec, *, after: datetime | None = None) -> Touch | None:
    """Return the next change of the clocks that touches it, if one does before its end."""
    found = calendars.next_touch(spec.calendar, _begin(spec, after))
    end_ms = spec.policy.end_ms
    return None if found is None or (end_ms is not None and found.at > moment(end_ms)) else found


def _begin(spec: Spec, after: datetime | None) -> datetime:
    begin = moment(runtime.now_ms() if after is None else instant("after", after))
    start_ms = spec.policy.start_ms
    return begin if start_ms is None else max(begin, moment(start_ms - 1))
