"""Maps of a bounded size, which forget what was used or entered first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

MOST = 10_000
"""Names that are remembered; whoever has been quiet for longest is forgotten first."""

T = TypeVar("T")


def forget_first(kept: dict[Any, Any], most: int) -> None:
    """Remove what was entered first, until there are no more than so many."""
    while len(kept) > most:
        del kept[next(iter(kept))]


class Remembered(Generic[T]):
    """What is known of callers by their names; what is not there is made."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        # The last to be used stands last.
        found = self._kept[name] = self._kept.pop(name) if name in self._kept else self._make()
        forget_first(self._kept, MOST)
        return found

    def __iter__(self) -> Iterator[str]:
        """Return the names, the last to be used last."""
        return iter(self._kept)
