"""What an attempt says while it runs: log lines in pieces, and how far it has come.

The store keeps pieces without looking inside; `pack` and `unpack` are the only two who do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.model.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

LOG_LIMIT = 256 * 1024
"""Bytes of one attempt's log that are kept: the first half of them and the last."""
PIECE_LIMIT = 16 * 1024
"""Bytes after which a new piece begins."""
NOTE_LIMIT = 200
"""Characters of a progress note."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log."""

    number: int
    """Place in the attempt's log, from 0; numbers that are missing were cut."""
    at_ms: int
    """Milliseconds since the handler began, by the worker's clock."""
    level: str
    """Level of a log record in small letters, or `out` and `err` for what was printed."""
    text: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines that follow each other, as the store keeps them."""

    number: int
    """Place among the attempt's pieces, from 0. Written twice is written once."""
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an attempt has come, in its own units."""

    done: float
    """How much is done."""
    total: float | None = None
    """How much there is to do; None: it is not known."""
    note: str = ""
    """What the attempt said beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What to write about a running attempt."""

    progress: Progress | None = None
    """Replaces what was known; None leaves it."""
    pieces: tuple[Piece, ...] = ()
    drop: tuple[int, int] = (0, 0)
    """Pieces numbered from the first up to, not including, the second are removed: the middle
    of a log that has become too long. What an attempt names later contains what it named before.
    """

    @property
    def size(self) -> int:
        """Bytes of its pieces."""
        return sum(len(piece.data) for piece in self.pieces)


NO_NEWS = Journal()


def joined(first: Journal | None, second: Journal) -> Journal:
    """Return one journal that says what both say, one after the other.

    Of a piece that both have, the first counts, as it would in the store.
    """
    if first is None:
        return second
    start, end = second.drop if second.drop[1] > second.drop[0] else first.drop
    return Journal(
        progress=second.progress or first.progress,
        pieces=tuple(
            piece for piece in (*first.pieces, *second.pieces) if not start <= piece.number < end
        ),
        drop=(start, end),
    )


def pack(lines: Sequence[Line]) -> bytes:
    """Write lines whose numbers follow each other."""
    first = lines[0].number if lines else 0
    written = [first, [(line.at_ms, line.level, line.text) for line in lines]]
    return _encode(written).encode("utf-8", "replace")


def unpack(data: bytes) -> list[Line]:
    """Read what `pack` wrote; what cannot be read is a line that says so."""
    try:
        first, lines = json.loads(data)
        return [
            Line(int(first) + place, int(at), str(level), str(text))
            for place, (at, level, text) in enumerate(lines)
        ]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return [Line(0, 0, "err", f"(a piece of {counted(len(data), 'byte')} cannot be read)")]


def lines_of(pieces: Iterable[Piece]) -> list[Line]:
    """Read the lines of pieces in their order."""
    return [line for piece in pieces for line in unpack(piece.data)]
