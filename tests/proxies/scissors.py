"""Decides which answers get lost, and keeps a record of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

_KEPT = 1000
Wanted = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer that was lost after its request had been carried out."""

    at: float
    """Time of day, as `time.time()` says it."""
    request: bytes
    """Its beginning, where the statement stands."""


class Scissors:
    """Loses no answer until it is told to. Used in the loop of the proxy only."""

    def __init__(self) -> None:
        self.cuts: list[Cut] = []
        self._left: int | None = 0
        self._chance = 1.0
        self._random = Random()
        self._wanted: Wanted | None = None

    def take_up(
        self, count: int | None, chance: float, seed: int | None, wanted: Wanted | None
    ) -> None:
        """Lose the next ``count`` answers (None: without end), each with this chance."""
        self._left, self._chance, self._wanted = count, chance, wanted
        self._random = Random(seed)

    def put_down(self) -> None:
        """Lose no more answers."""
        self._left = 0

    def takes(self, request: bytes) -> bool:
        """Tell whether the answer to this request is to be lost; if so, count it."""
        if self._left == 0 or (self._wanted is not None and not self._wanted(request)):
            return False
        if self._chance < 1.0 and self._random.random() >= self._chance:
            return False
        if self._left is not None:
            self._left -= 1
        return True

    def give_back(self) -> None:
        """The request was not carried out: another one takes its place."""
        if self._left is not None:
            self._left += 1

    def note(self, request: bytes) -> None:
        """Put down that the answer was lost."""
        self.cuts.append(Cut(time.time(), request[:_KEPT]))
