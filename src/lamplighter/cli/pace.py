"""Much to do, at no more than a given speed, and a word on how far it is."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from lamplighter import runtime
from lamplighter.cli import output

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

_PORTIONS_A_SECOND = 5
_WORD_EVERY = 5.0
"""Seconds between two words on how far it is."""


class Pace:
    """Lets at most ``rate`` things a second be done; None: as many as there are."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._free_at = runtime.monotonic()

    def portion(self, most: int) -> int:
        """Say how many to do at once: what a fifth of a second allows, one at least."""
        if self._rate is None:
            return most
        return max(1, min(most, math.floor(self._rate / _PORTIONS_A_SECOND)))

    async def wait(self, number: int) -> None:
        """Wait until so many more may be done."""
        if self._rate is None:
            return
        now = runtime.monotonic()
        if now < self._free_at:
            await runtime.sleep(self._free_at - now)
        self._free_at = max(now, self._free_at) + number / self._rate


class Tally:
    """Shows how many of about how many are done, now and then in a line beside the answer.

    ``at_least``: the total was counted up to a limit, and there may be more. As a context it is a
    bar at a terminal, and says how far it came when it was stopped.
    """

    def __init__(self, total: int, word: str, *, at_least: bool = False) -> None:
        self._total = total
        self._about = "at least" if at_least else "about"
        self._word = word
        self._done = 0
        self._told_at = runtime.monotonic()
        self._bar: ProgressBar[int] | None = None

    def __enter__(self) -> Self:
        # Where the count has ended before the jobs did, nobody knows how much is left.
        if self._total and self._about == "about" and sys.stderr.isatty():
            self._bar = click.progressbar(length=self._total, file=sys.stderr).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the bar; say how far it came when it did not come to its end."""
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
        if error is not None:
            output.note(f"stopped: {self._done:,} {self._word}, the rest is as it was")

    def add(self, number: int) -> None:
        """Count what was done."""
        self._done += number
        if self._bar is not None:
            self._bar.update(number)
            return
        now = runtime.monotonic()
        if now - self._told_at >= _WORD_EVERY:
            self._told_at = now
            of = f" of {self._about} {self._total:,}" if self._total > self._done else ""
            output.note(f"{self._done:,}{of} {self._word}")
