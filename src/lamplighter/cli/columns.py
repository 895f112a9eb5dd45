"""How columns share the width of a terminal: what must be read whole is never cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = 2
"""Spaces between two columns."""
LEAST = 8
"""Characters to which text is cut at most, before a column is left out instead."""

_MARKS = ">~?"


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as its declaration says: `>right`, `~cut`, `?left out first`, or several.

    `~~prose` gives way wholly before a name beside it is cut.
    """

    name: str
    right: bool
    """Aligned to the right: a number."""
    cut: bool
    """Text, which may be cut. Ids, statuses, numbers and times may not."""
    prose: bool
    """Free text, which names come before."""
    spare: bool
    """Left out before others where there is no room."""


def column(declared: str) -> Column:
    """Read the declaration of a column."""
    name = declared.lstrip(_MARKS)
    marks = declared[: len(declared) - len(name)]
    return Column(
        name, right=">" in marks, cut="~" in marks, prose="~~" in marks, spare="?" in marks
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A column with what is in it."""

    column: Column
    width: int
    """What it needs."""
    floor: int
    """The least to which it may be cut: ids among the text stay whole."""
    empty: bool
    """Nothing but its heading would be shown."""

    @property
    def least(self) -> int:
        """Width below which it is left out."""
        return min(self.width, max(LEAST, self.floor)) if self.column.cut else self.width


def fitted(parts: Sequence[Part], room: int) -> list[int | None]:
    """Return how wide each column is drawn; None: it is left out.

    Empty columns go first, then spare ones, from the right, then prose that would cost a name,
    then other text. What may not be cut stays, even if there is no room.
    """
    shown = list(range(len(parts)))
    left: list[int] = []
    for at in _leaving(parts):
        if _total([_wanted(parts[one], beside=parts[at]) for one in shown]) > room:
            shown.remove(at)
            left.append(at)
    for at in reversed(left):
        # What left for another that has left as well comes back.
        if not parts[at].empty and _total([parts[one].width for one in (*shown, at)]) <= room:
            shown.append(at)
    found: list[int | None] = [None] * len(parts)
    for at in shown:
        found[at] = parts[at].width
    for prose in (True, False):
        texts = [at for at in shown if parts[at].column.prose is prose]
        _cut(parts, found, texts, _total([found[at] or 0 for at in shown]) - room)
    return found


def _wanted(part: Part, *, beside: Part) -> int:
    """Return the width that a column must have for another one to stay beside it."""
    if beside.empty:
        return part.width
    if beside.column.prose:
        return part.least if part.column.prose else part.width
    return part.least


def _cut(parts: Sequence[Part], found: list[int | None], texts: Sequence[int], over: int) -> None:
    """Cut texts by so many characters, as far as they may be."""
    # The widest gives way first, so that short texts stay whole.
    for _ in range(over):
        able = [at for at in texts if (found[at] or 0) > parts[at].least]
        if not able:
            break
        widest = max(able, key=lambda at: found[at] or 0)
        found[widest] = (found[widest] or 0) - 1


def _leaving(parts: Sequence[Part]) -> list[int]:
    """Return which columns may be left out, the first to go first."""

    def rank(at: int) -> tuple[int, int]:
        if parts[at].empty:
            return 0, -at
        if parts[at].column.spare:
            return 1, -at
        return (2 if parts[at].column.prose else 3), -at

    able = [at for at, each in enumerate(parts) if each.column.cut or each.column.spare]
    return sorted(able, key=rank)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * max(0, len(widths) - 1)
