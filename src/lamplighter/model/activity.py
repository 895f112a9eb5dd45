"""What workers did, minute by minute: counts, and how late jobs began."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MINUTE_MS = 60_000
MOST_MINUTES = 1_440
"""Minutes that are kept, and that can be asked for at once: a day."""

LAG_BOUNDS_MS = (
    10,
    25,
    50,
    100,
    250,
    500,
    1_000,
    5_000,
    15_000,
    60_000,
    300_000,
    900_000,
    3_600_000,
)
"""Upper bounds, each included, of the classes into which lags are sorted; one more is above all."""
LAGS = len(LAG_BOUNDS_MS) + 1


def lag_class(lag_ms: float) -> int:
    """Return the class of a lag."""
    return bisect_left(LAG_BOUNDS_MS, lag_ms)


def no_lags() -> tuple[int, ...]:
    """Return counts of zero."""
    return (0,) * LAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What happened in some stretch of time, counted."""

    started: int = 0
    """Handlers that began."""
    succeeded: int = 0
    failed: int = 0
    """Jobs that died."""
    retried: int = 0
    """Failures after which the job waits for another attempt."""
    snoozed: int = 0
    """Jobs that wait again without a failure: snoozed, or given back."""
    cancelled: int = 0
    """Jobs that were cancelled while they ran."""
    rescued: int = 0
    """Jobs whose lease had ended and that were given back."""
    stale: int = 0
    """Settlements that were refused because the job belonged to somebody else."""
    lags: tuple[int, ...] = field(default_factory=no_lags)
    """Starts by the time between falling due and starting: see `LAG_BOUNDS_MS`."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return all counts in the order in which stores keep them; new ones are added last."""
        return (*(getattr(self, name) for name in _NAMED), *self.lags)

    def __bool__(self) -> bool:
        return any(self.numbers)


_NAMED = tuple(each.name for each in fields(Tally) if each.name != "lags")
NUMBERS = len(_NAMED) + LAGS
NOTHING = Tally()


def tally_of(numbers: Sequence[int]) -> Tally:
    """Read what `Tally.numbers` gives; what is missing at the end is nothing."""
    every = [*numbers, *(0 for _ in range(NUMBERS - len(numbers)))]
    named = dict(zip(_NAMED, every[: len(_NAMED)], strict=True))
    return Tally(**named, lags=tuple(every[len(_NAMED) : NUMBERS]))


def added(tallies: Iterable[Tally]) -> Tally:
    """Put several tallies together."""
    sums = [sum(column) for column in zip(*(each.numbers for each in tallies), strict=True)]
    return tally_of(sums)


@dataclass(frozen=True, slots=True)
class Minute:
    """What happened in one minute of the store's clock."""

    at_ms: int
    """When it began."""
    tally: Tally


def minute_of(now_ms: int) -> int:
    """Return the beginning of a minute."""
    return now_ms - now_ms % MINUTE_MS


def filled(found: Iterable[Minute], now_ms: int, minutes: int) -> list[Minute]:
    """Return the last ``minutes``, the present one included, oldest first and none left out."""
    known = {minute.at_ms: minute for minute in found}
    last = minute_of(now_ms)
    every = range(last - (minutes - 1) * MINUTE_MS, last + 1, MINUTE_MS)
    return [known.get(at_ms) or Minute(at_ms, NOTHING) for at_ms in every]


def last_minute(minutes: Sequence[Minute], now_ms: int) -> Tally:
    """Estimate what happened in the last 60 seconds, from the present minute and the one before.

    Of the one before, that part counts which is not older.
    """
    present = minute_of(now_ms)
    known = {minute.at_ms: minute.tally.numbers for minute in minutes}
    nothing = NOTHING.numbers
    before, here = known.get(present - MINUTE_MS, nothing), known.get(present, nothing)
    part = 1 - (now_ms - present) / MINUTE_MS
    return tally_of([round(old * part) + new for old, new in zip(before, here, strict=True)])


def percentile(lags: Sequence[int], share: float) -> float | None:
    """Estimate the lag in ms that ``share`` of the starts did not exceed; None without starts.

    Inside a class the lags are taken to be spread evenly. Of those above the highest bound nothing
    is known but that: the bound itself is given.
    """
    total = sum(lags)
    if not total:
        return None
    wanted, before = share * total, 0
    for place, upper in enumerate(LAG_BOUNDS_MS):
        here = lags[place]
        if here and before + here >= wanted:
            lower = LAG_BOUNDS_MS[place - 1] if place else 0
            return lower + (upper - lower) * max(0.0, wanted - before) / here
        before += here
    return float(LAG_BOUNDS_MS[-1])
