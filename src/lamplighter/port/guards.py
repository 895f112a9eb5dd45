"""What every engine refuses in the same words, before anything is asked of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from lamplighter.model.errors import InvalidInput, StoreClosed
from lamplighter.model.names import check_words

__all__ = ["Closed", "bounded", "check_note"]

T = TypeVar("T")


class Closed:
    """Stands where the parts of an engine will be."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __getattr__(self, name: str) -> Any:
        raise StoreClosed(
            f"the store `{self._where}` is not open", hint="call `await engine.open()` first"
        )


def check_note(by: str, reason: str) -> None:
    """Refuse what cannot stand in an operator's note."""
    check_words("operator's name", by)
    check_words("reason", reason)


def bounded(items: Sequence[T], most: int) -> Sequence[T]:
    """Give these items, if one call may carry so many."""
    if len(items) > most:
        raise InvalidInput(
            f"{len(items)} items in one call, the limit is {most}",
            hint=f"split the call into batches of at most {most}",
            value=len(items),
        )
    return items
