"""Lists as parameters: PostgreSQL reads the text of an array faster than the driver writes one.

Verbs hand whole columns over, one list per field. Bytes travel as one piece with the places where
each part stands in it, because the text of a list of bytes would be more than twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate


def numbers(values: Iterable[int | None]) -> str:
    """Write a list of numbers; None is NULL."""
    return "{" + ",".join(["NULL" if one is None else str(one) for one in values]) + "}"


def flags(values: Iterable[bool]) -> str:
    """Write a list of truths."""
    return "{" + ",".join(["t" if one else "f" for one in values]) + "}"


def texts(values: Sequence[str]) -> str:
    """Write a list of texts, none of them None."""
    if not values:
        return "{}"
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join([one.replace("\\", "\\\\").replace('"', '\\"') for one in values])
    return '{"' + joined + '"}'


def joined(parts: Sequence[bytes | None]) -> tuple[str, str, bytes] | tuple[None, None, None]:
    """Return where each part starts and how long it is, and all of them in one piece.

    None has no length; if all are None, there is nothing to send.
    """
    sizes = [None if part is None else len(part) for part in parts]
    given = [part for part in parts if part is not None]
    if not given:
        return None, None, None
    starts = accumulate([size or 0 for size in sizes], initial=1)
    return (
        numbers(start for start, _ in zip(starts, sizes, strict=False)),
        numbers(sizes),
        b"".join(given),
    )
