"""One case: an expression in a zone over a window, asked of the calendar and of the oracle."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from tests.calendar.subject import Cron, Gap, Overlap

INSTANT = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
POLICIES: tuple[tuple[Gap, Overlap], ...] = (
    ("next_valid", "first"),
    ("next_valid", "both"),
    ("skip", "first"),
    ("skip", "both"),
)
LONG = 500
"""More instants than that are walked only around the middle; `between` still gives them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is asked, with all that is needed to ask it again."""

    expression: str
    zone: str
    gap: Gap
    overlap: Overlap
    after: datetime
    until: datetime
    by_seconds: bool = False
    seed: str = ""
    """Of the schedule: it decides what an `H` stands for."""

    def command(self) -> str:
        """The command line that asks it again."""
        extra = " --by-seconds" if self.by_seconds else ""
        extra += f" --hash-seed '{self.seed}'" if self.seed else ""
        return (
            f"python -m tests.calendar --expression '{self.expression}' --zone {self.zone}"
            f" --gap {self.gap} --overlap {self.overlap}"
            f" --after {self.after.isoformat()} --until {self.until.isoformat()}{extra}"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the two disagree."""

    case: Case
    call: str
    expected: str
    found: str

    def __str__(self) -> str:
        case = self.case
        return (
            f"{case.expression!r} in {case.zone}, gap={case.gap}, overlap={case.overlap}:\n"
            f"  {self.call}\n"
            f"  oracle:   {self.expected}\n"
            f"  calendar: {self.found}\n"
            f"  {case.command()}"
        )


def compare(
    case: Case, expected: Sequence[datetime], moments: Sequence[datetime]
) -> list[Difference]:
    """Ask the calendar in every way. `moments` are where it is most likely to be wrong."""
    try:
        cron = Cron(
            case.expression,
            timezone=case.zone,
            gap=case.gap,
            overlap=case.overlap,
            seed=case.seed,
        )
        found = [
            *_between(case, cron, expected),
            *_walks(case, cron, expected, moments),
            *_probes(case, cron, expected, moments),
        ]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a difference
        return [Difference(case, "construction or call", "no error", repr(error))]
    return found


def _between(case: Case, cron: Cron, expected: Sequence[datetime]) -> Iterator[Difference]:
    call = f"between({case.after}, {case.until})"
    yield from _same(case, call, expected, list(cron.between(case.after, case.until)))


def _walks(
    case: Case, cron: Cron, expected: Sequence[datetime], moments: Sequence[datetime]
) -> Iterator[Difference]:
    """From one end of the window to the other with `next_after`, and back."""
    after, until = case.after, case.until
    if len(expected) > LONG:
        middle = moments[0] if moments else after
        place = bisect.bisect(expected, middle)
        expected = expected[max(0, place - LONG // 4) : place + LONG // 4]
        after, until = expected[0] - INSTANT, expected[-1]
    upward = _walk(cron.next_after, after, lambda one: one <= until, len(expected))
    yield from _same(case, f"next_after, from {after} to {until}", expected, upward)
    start = until + INSTANT
    downward = _walk(cron.previous_before, start, lambda one: one > after, len(expected))
    call = f"previous_before, from {start} down to {after}"
    yield from _same(case, call, expected, downward[::-1])


def _walk(
    step: Callable[[datetime], datetime | None],
    start: datetime,
    inside: Callable[[datetime], bool],
    expected: int,
) -> list[datetime]:
    found: list[datetime] = []
    at = step(start)
    # One that stands still must not keep us for ever.
    while at is not None and inside(at) and len(found) <= expected + 3:
        found.append(at)
        at = step(at)
    return found


def _probes(
    case: Case, cron: Cron, expected: Sequence[datetime], moments: Sequence[datetime]
) -> Iterator[Difference]:
    """From single instants: at the change, just before it and just after, and at random."""
    random = Random(f"probes {case}")
    instants = [
        one + shift for one in moments for shift in (-SECOND, -INSTANT, 0 * SECOND, INSTANT)
    ]
    instants += [case.after + random.random() * (case.until - case.after) for _ in range(3)]
    for instant in instants:
        place = bisect.bisect_right(expected, instant)
        wanted = expected[place] if place < len(expected) else None
        given = cron.next_after(instant)
        if wanted is None and given is not None and given > case.until:
            given = None  # beyond the window, of which the oracle knows nothing
        yield from _same(case, f"next_after({instant})", [wanted], [given])
        place = bisect.bisect_left(expected, instant)
        wanted = expected[place - 1] if place else None
        given = cron.previous_before(instant)
        if wanted is None and given is not None and given <= case.after:
            given = None
        yield from _same(case, f"previous_before({instant})", [wanted], [given])


def _same(
    case: Case,
    call: str,
    expected: Sequence[datetime | None],
    found: Sequence[datetime | None],
) -> Iterator[Difference]:
    if list(expected) != list(found):
        missing = [one for one in expected if one not in set(found)]
        extra = [one for one in found if one not in set(expected)]
        words = f"order or repeats: {_show(found)}" if not missing + extra else None
        yield Difference(
            case,
            call,
            f"{len(expected)} instants, only here: {_show(missing)}",
            words or f"{len(found)} instants, only here: {_show(extra)}",
        )
    elif any(one is not None and (one.tzinfo is not UTC or one.microsecond) for one in found):
        yield Difference(case, call, "whole seconds in datetime.UTC", _show(found))


def _show(instants: Sequence[datetime | None]) -> str:
    shown = ", ".join(
        "none" if one is None else f"{one:%Y-%m-%d %H:%M:%SZ}" for one in instants[:4]
    )
    return (shown or "-") + (f" and {len(instants) - 4} more" if len(instants) > 4 else "")
