"""What is known of callers by their names, for as many as were heard of last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

MOST = 10_000
"""Names that are remembered; whoever has been quiet for longest is forgotten first."""

T = TypeVar("T")


class Remembered(Generic[T]):
    """Gives what is kept under a name; what is not there is made."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        # The last to be used stands last.
        found = self._kept[name] = self._kept.pop(name) if name in self._kept else self._make()
        while len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
        return found

    def __iter__(self) -> Iterator[str]:
        """Give the names, the last to be used last."""
        return iter(self._kept)
