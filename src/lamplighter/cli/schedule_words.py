"""What is typed about when a schedule runs, and how that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from lamplighter.cli import output, reading
from lamplighter.model.errors import InvalidInput, InvalidTime
from lamplighter.model.job import Level
from lamplighter.model.names import shown
from lamplighter.model.schedule import Interval
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule, RunRecord
from lamplighter.schedules import Schedule

NOTHING_AHEAD = "it never fires, since nothing of its calendar lies ahead"
_LONGEST = 100 * 366 * 86_400


def interval(what: str, given: object) -> Interval:
    """Read how far the runs of a schedule are apart: seconds, or text as in 15m."""
    seconds = reading.duration(what, given) if isinstance(given, str) else given
    number = seconds if isinstance(seconds, (int, float)) and type(seconds) is not bool else 0
    if number % 1 or not 1 <= number <= _LONGEST:
        raise InvalidTime(
            f"{what} {shown(given)} is not a number of whole seconds from 1 up to a century",
            hint="write how far its runs are apart: 90, 15m, 2h, 1d",
            value=given,
        )
    return Interval(int(number))


def when(found: Schedule, *, short: bool = False) -> output.Cell:
    """Say when it runs; what another version has written cannot be said."""
    try:
        text = found.spec.calendar.describe()
    except InvalidInput:
        return "cannot be read; put it again, or delete it", "red"
    first, dot, rest = text.partition(". ")
    return first + dot.strip() if short and rest else text


def next_run(found: Schedule, *, short: bool = False) -> str:
    """Say when it is fired next."""
    if found.record.hold is not None:
        return "held"
    written = output.away if short else output.instant_and_away
    return written(found.next_run_ms) or "never again"


def why(found: RunRecord) -> str:
    """Say why occurrences got no job, and how many."""
    if found.reason is None:
        return ""
    if found.count == 1:
        return found.reason
    many = "very many" if found.count is None else f"{found.count:,}"
    return f"{found.reason}: {many} since {output.instant(found.first_ms)}"


def changes(before: str, new: NewSchedule) -> Iterator[str]:
    """Name what a put makes different. Arguments are not quoted: some may be secret."""
    after = specs.from_text(new.spec, new.id)
    try:
        old = specs.from_text(before, new.id)
    except InvalidInput:
        yield "all of it: what is stored cannot be read"
        return
    if old.calendar != after.calendar:
        yield f"when: {old.calendar.describe()} → {after.calendar.describe()}"
    for name, was, now in _different(old.template, after.template):
        if name == "extras":
            yield from (part for part, _, _ in _different(was, now))
        elif name == "args":
            yield "arguments"
        else:
            yield f"{'priority' if name == 'level' else name}: {_value(was)} → {_value(now)}"
    for name, was, now in _different(old.policy, after.policy):
        yield f"{name.removesuffix('_ms')}: {_measure(name, was)} → {_measure(name, now)}"


def _different(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    for field in fields(old):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if was != now:
            yield field.name, was, now


def _value(value: object) -> str:
    return value.label if isinstance(value, Level) else str(value)


def _measure(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in {"start_ms", "end_ms"}:
        return output.instant(value) or ""
    return output.span(value / 1000) if name.endswith("_ms") else str(value)
