"""What one attempt says, cut into lines and kept within bounds whatever it says.

Of a log the first half of the limit is kept for ever and behind it the last half, which moves on;
what falls out of the middle is dropped here if it was never handed out, and named in the journal
if it was. So the store never holds more than the limit, nor is it ever sent more at once.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.counts import counted
from lamplighter.model.journal import (
    LOG_LIMIT,
    NOTE_LIMIT,
    PIECE_LIMIT,
    Journal,
    Line,
    Piece,
    Progress,
    joined,
    pack,
)

if TYPE_CHECKING:
    from lamplighter.worker.run import Run

LINE_LIMIT = 8 * 1024
"""Bytes of a line that are kept."""
ROW = 64
"""Bytes that a piece counts beside its data, so that there cannot be too many small ones."""

_LINE_ROW = 16
_MOST_HALVES = 8
_MOST_UNREAD = 1000
_LEVEL = 20
_EXACT = 2**53
"""Whole numbers up to here are the same in every store."""

_Text = tuple[int, str, str, int, int, int]
"""Milliseconds, level, lines, how many, characters that the only one has lost, and bytes."""

# Sequences that a terminal would obey: with parameters, with a text of their own, and short ones.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Other control characters but the tab, and those that turn the direction of what follows.
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SEPARATORS = re.compile(r"[\u2028\u2029]")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def plain(text: str) -> str:
    """Return a line as a terminal would show it in the end, without anything that moves its cursor.

    Of what was overwritten after a carriage return, the last state stays.
    """
    text = text.rstrip("\r")
    text = text[text.rfind("\r") + 1 :]
    text = _CONTROLS.sub("", _ESCAPES.sub("", text))
    return _SURROGATES.sub("\ufffd", _SEPARATORS.sub(" ", text))


class Notebook:
    """The `Notes` of one attempt that runs in this process."""

    def __init__(
        self,
        *,
        began: float,
        redact: Callable[[str], str] | None = None,
        limit: int = LOG_LIMIT,
        piece: int = PIECE_LIMIT,
        line: int = LINE_LIMIT,
    ) -> None:
        # A finalizer or a signal handler may print while this very thread is inside.
        self._lock = threading.RLock()
        self._busy = False
        self._late: deque[tuple[str, str]] = deque(maxlen=_MOST_HALVES)
        self._began = began
        self._redact = redact
        self._half = limit // 2
        self._shelf = _Shelf(self._half)
        self._piece = piece
        self._line = line
        self._slack = line
        """Characters behind the limit of a line that are looked at and never kept: a secret that
        begins before the cut must be whole to be seen."""
        self._window = self._line + self._slack
        self._halves: dict[str, str] = {}
        """Beginnings of lines, by level."""
        self._lost: dict[str, int] = {}
        """How many characters of them did not fit into the window."""
        self._unread: deque[_Text] = deque()
        """Whole lines as they were written. Most of what a talkative handler writes is dropped
        without having been looked at."""
        self._unread_size = 0
        self._merged = piece // 4
        self._next = 0
        """Number of the first unread line."""
        self._skipped = False
        """Lines before the first unread one were dropped."""
        self._progress: Progress | None = None
        self._told: Progress | None = None

    @classmethod
    def of(cls, run: Run) -> Notebook:
        """Make the notebook of a run."""
        return cls(began=run.started_at or runtime.boottime(), redact=run.redact)

    def write(self, level: str, text: str) -> None:
        """Take in text that was logged or printed; it may have many lines or half of one."""
        if type(text) is not str:
            # Not str(): that would call whatever the subclass says.
            text = str.__str__(text)
        with self._lock:
            if self._busy:
                self._late.append((level, text[: self._window]))
                return
            self._busy = True
            try:
                self._hear(level, text)
                if self._late:
                    self._hear_late()
            finally:
                self._busy = False

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Take in how far it has come; the last word counts."""
        self._progress = Progress(
            done=_number(done),
            total=None if total is None else _number(total),
            note=self._note(note) if note else "",
        )

    def take(self, *, last: bool = False) -> Journal | None:
        """Return what is new since the last time; ``last``: with the half line at the end."""
        with self._lock:
            if self._busy:
                return None
            self._busy = True
            try:
                return self._take(last=last)
            finally:
                self._busy = False

    # ── hear ─────────────────────────────────────────────────────────────────────────────────

    def _hear(self, level: str, text: str) -> None:
        if len(level) > _LEVEL or not level.isprintable():
            level = plain(level)[:_LEVEL]
        gulp = self._half // 8
        if len(text) <= gulp:
            self._split(level, text)
            return
        for place in range(0, len(text), gulp):
            self._split(level, text[place : place + gulp])

    def _hear_late(self) -> None:
        while self._late:
            self._hear(*self._late.popleft())

    def _split(self, level: str, text: str) -> None:
        """Divide a text into the end of a line, whole lines, and the beginning of one."""
        start, end = 0, text.rfind("\n")
        if end < 0:
            if text:
                self._extend(level, text)
            return
        at = self._now()
        if level in self._halves:
            start = text.find("\n")
            if start:
                self._extend(level, text[:start])
            self._end_half(at, level)
            start += 1
        if start <= end:
            lines = text[start:end]
            self._add(at, level, lines, lines.count("\n") + 1)
        if end + 1 < len(text):
            self._extend(level, text[end + 1 :])

    def _now(self) -> int:
        return max(0, int((runtime.boottime() - self._began) * 1000))

    def _extend(self, level: str, text: str) -> None:
        """Add to the beginning of a line."""
        half = self._halves.get(level)
        if half is not None:
            text = half + text
        elif len(self._halves) >= _MOST_HALVES:
            self._end_half(self._now(), next(iter(self._halves)))
        if len(text) > self._window or level in self._lost:
            text = self._shrunk(level, text)
        self._halves[level] = text

    def _shrunk(self, level: str, text: str) -> str:
        """Return as much of the beginning of a line as there is room for; count the rest."""
        body = text.rstrip("\r")
        start = body.rfind("\r") + 1
        if start:
            # What stood there is overwritten.
            body = body[start:]
            self._lost.pop(level, None)
        over = len(body) - self._window
        if over > 0:
            body = body[: self._window]
            self._lost[level] = self._lost.get(level, 0) + over
        # What comes next overwrites the line too, or ends it.
        return f"{body}\r" if text.endswith("\r") else body

    def _end_half(self, at: int, level: str) -> None:
        lost = self._lost.pop(level, 0) if self._lost else 0
        self._add(at, level, self._halves.pop(level), 1, lost)

    def _add(self, at: int, level: str, text: str, count: int, lost: int = 0) -> None:
        """Take in whole lines."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        size += count * _LINE_ROW
        self._unread_size += size
        if self._unread and not lost:
            last = self._unread[-1]
            together = last[5] + size
            if last[0] == at and together < self._merged and last[1] == level and not last[4]:
                # Small texts within one millisecond are kept as one.
                text = f"{last[2]}\n{text}"
                self._unread[-1] = (at, level, text, last[3] + count, 0, together)
                return
        self._unread.append((at, level, text, count, lost, size))
        if len(self._unread) > _MOST_UNREAD:
            self._read()
        elif self._unread_size > self._half:
            if self._shelf.has_head:
                self._skip()
            else:
                self._read()

    def _skip(self) -> None:
        """Drop the first unread lines as long as the others fill the last half alone."""
        while len(self._unread) > 1 and self._unread_size - self._unread[0][5] > self._half:
            _, _, _, count, _, size = self._unread.popleft()
            self._unread_size -= size
            self._next += count
            self._skipped = True

    # ── read ─────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        """Turn what is unread into pieces."""
        unread, self._unread, self._unread_size = self._unread, deque(), 0
        number = self._next
        self._next += sum(text[3] for text in unread)
        if self._skipped:
            self._shelf.skip()
            self._skipped = False
        open_lines: list[Line] = []
        open_size = 0
        for at, level, text, _, lost, _ in unread:
            for raw in text.split("\n"):
                line = self._shown(raw, lost)
                size = _LINE_ROW + (len(line) if line.isascii() else len(line.encode()))
                if open_size + size > self._piece:
                    self._pack(open_lines)
                    open_lines, open_size = [], 0
                open_lines.append(Line(number, at, level, line))
                open_size += size
                number += 1
        self._pack(open_lines)

    def _shown(self, text: str, lost: int) -> str:
        """Return a line as it is kept; ``lost`` characters at its end are missing already."""
        if not text.isprintable():
            text = plain(text)
        if self._redact is not None and text:
            text = self._redact(text)
        if not lost and len(text) * 4 <= self._line:
            return text
        whole = len(text)
        if lost:
            text = text[: max(0, whole - self._slack)]
        data = text.encode()
        if len(data) > self._line:
            text = data[: self._line].decode("utf-8", "ignore")
        lost += whole - len(text)
        return f"{text} … ({counted(lost, 'character')} cut)" if lost else text

    def _pack(self, lines: Sequence[Line]) -> None:
        if not lines:
            return
        data = pack(lines)
        if len(data) > self._piece and len(lines) > 1:
            # Many characters that are longer when packed, quotes for example.
            self._pack(lines[: len(lines) // 2])
            self._pack(lines[len(lines) // 2 :])
        else:
            self._shelf.add(data)

    def _take(self, *, last: bool) -> Journal | None:
        self._hear_late()
        if last and self._halves:
            at = self._now()
            for level in list(self._halves):
                self._end_half(at, level)
        if self._unread:
            self._read()
        progress = self._progress
        news = None if progress == self._told else progress
        self._told = progress
        pieces, drop = self._shelf.take(whole=last)
        if news is None and not pieces and drop == (0, 0):
            return None
        return Journal(progress=news, pieces=pieces, drop=drop)

    def _note(self, note: str) -> str:
        note = plain(str.__str__(note).replace("\n", " "))
        return (note if self._redact is None else self._redact(note))[:NOTE_LIMIT]


class _Shelf:
    """The pieces of a log: the first ones for ever, of the later ones the last."""

    def __init__(self, half: int) -> None:
        self._half = half
        self._count = 0
        self._head: list[Piece] = []
        """Those of the first half that nobody has taken yet."""
        self._head_size = 0
        self._head_end: int | None = None
        """Number of the first piece that is not of the first half, once there is one."""
        self._tail: deque[tuple[int, int]] = deque()
        """Number and size of those of the last half, taken or not."""
        self._tail_size = 0
        self._fresh: deque[Piece] = deque()
        """Those of the last half that nobody has taken yet."""
        self._dropped = 0
        """End of the range that was named last."""

    @property
    def has_head(self) -> bool:
        """Whether the first half is complete."""
        return self._head_end is not None

    def add(self, data: bytes) -> None:
        piece, size = Piece(self._count, data), len(data) + ROW
        self._count += 1
        if self._head_end is None:
            if self._head_size + size <= self._half:
                self._head.append(piece)
                self._head_size += size
                return
            self._head_end = piece.number
        self._fresh.append(piece)
        self._tail.append((piece.number, size))
        self._tail_size += size
        while self._tail_size > self._half and len(self._tail) > 1:
            number, size = self._tail.popleft()
            self._tail_size -= size
            if self._fresh[0].number == number:
                self._fresh.popleft()

    def skip(self) -> None:
        """Let go of the last half: what comes next does not follow it."""
        self._tail.clear()
        self._tail_size = 0
        self._fresh.clear()

    def take(self, *, whole: bool) -> tuple[tuple[Piece, ...], tuple[int, int]]:
        """Return what is new, and the range to drop if it has grown or if ``whole`` is wanted.

        The range always begins where the first half ends: whoever hears only of the last one
        misses nothing.
        """
        pieces = (*self._head, *self._fresh)
        self._head = []
        self._fresh.clear()
        drop = (0, 0)
        if self._head_end is not None:
            end = self._tail[0][0] if self._tail else self._count
            if end > self._head_end and (whole or end > self._dropped):
                drop = (self._head_end, end)
                self._dropped = end
        return pieces, drop


class Relay:
    """The `Notes` of an attempt whose notebook is kept in another process."""

    def __init__(self, limit: int = LOG_LIMIT) -> None:
        self._lock = threading.Lock()
        self._half = limit // 2
        self._journal: Journal | None = None

    def put(self, journal: Journal) -> None:
        """Take in what the notebook over there gave."""
        if journal == Journal():
            return
        with self._lock:
            together = joined(self._journal, journal)
            if len(together.pieces) > 1:
                # A notebook's own bounds make this cut nothing; what comes over a line may lie.
                pieces = _ends(together.pieces, self._half)
                together = Journal(progress=together.progress, pieces=pieces, drop=together.drop)
            self._journal = together

    def write(self, level: str, text: str) -> None:
        """Lines belong into the notebook over there; here they would have no number."""

    def progress(self, done: float, total: float | None, note: str) -> None:
        """Take in how far it has come."""
        self.put(Journal(progress=Progress(done=done, total=total, note=note[:NOTE_LIMIT])))

    def take(self, *, last: bool = False) -> Journal | None:
        """Return what has come since the last time."""
        with self._lock:
            journal, self._journal = self._journal, None
            return journal


def _ends(pieces: Sequence[Piece], half: int) -> tuple[Piece, ...]:
    """Return the first and the last pieces within the bounds; the middle goes."""
    if sum(len(piece.data) + ROW for piece in pieces) <= 2 * half:
        return tuple(pieces)
    head = _fitting(pieces, half)
    tail = _fitting(reversed(pieces[len(head) :]), half)
    return (*head, *reversed(tail))


def _fitting(pieces: Iterable[Piece], room: int) -> list[Piece]:
    fitting: list[Piece] = []
    for piece in pieces:
        room -= len(piece.data) + ROW
        if room < 0:
            break
        fitting.append(piece)
    return fitting


def _number(value: float) -> float:
    """Return a plain number: subclasses and endless integers cannot be stored everywhere."""
    return int(value) if isinstance(value, int) and abs(value) <= _EXACT else float(value)
