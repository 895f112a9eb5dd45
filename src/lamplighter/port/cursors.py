"""Where a listing goes on: a few numbers, as text that callers hand back unread."""

from __future__ import annotations

from lamplighter.model.errors import InvalidInput
from lamplighter.model.names import shown

_LAST = 9_000_000_000_000_000


def cursor_of(place: tuple[int, ...]) -> str:
    """Write the place of the last job that was looked at."""
    return ".".join(str(part) for part in place)


def place_of(cursor: str | None, parts: int) -> tuple[int, ...]:
    """Read a place of that many numbers; None is the place before the newest."""
    if cursor is None:
        return (_LAST,) * parts
    found = cursor.split(".")
    if len(found) != parts or not all(_is_number(part) for part in found):
        raise InvalidInput(
            f"the cursor {shown(cursor)} does not belong to this listing",
            hint="use the cursor of the page before with the same filter, or none to start",
            value=cursor,
        )
    return tuple(int(part) for part in found)


def _is_number(part: str) -> bool:
    """Tell whether it is a number that a store can compare with."""
    return part.isascii() and part.isdecimal() and len(part) <= len(str(_LAST))
