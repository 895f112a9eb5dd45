"""The line of one (queue, level) during a claim: whose turn it is, read from the store in pages.

Nothing is written here; `verbs/claim.py` writes what was taken once the claim is full.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model import stride

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.catalog import AskedBand
    from lamplighter.engines.sqlite.transaction import Row, Transaction

SQL = load("claim")

SEQ, DUE, COST = 0, 2, 13
_BEFORE_ALL = -1
_PAGE_LIMIT = 128

Entry = tuple[int, str, int, int, "Turn"]
"""Place in line: time, tenant, due and sequence of the head, and the turn itself."""


@dataclass(slots=True, eq=False)
class Turn:
    """A (lane, tenant) as the claim sees it."""

    lane: int
    tenant: str
    time: int
    due: int
    seq: int
    share: int
    weight: int
    entry: Entry | None = None
    """Its valid place in the heap; an older entry of the same turn is skipped when met."""
    jobs: deque[Row] = field(default_factory=deque["Row"])
    read: int = 0
    """Size of the last page of jobs; the next one is twice as large."""
    last: tuple[int, int] = (-1, -1)
    """Due time and sequence of the last job read."""
    exhausted: bool = False
    changed: bool = False

    def __lt__(self, other: Turn) -> bool:
        return self.lane < other.lane


class Line:
    """All turns of one band that this claim may take from, in the order of the stride."""

    def __init__(self, tx: Transaction, band: AskedBand, room: int) -> None:
        self._tx = tx
        self._room = room
        self.band = band
        row = tx.one(SQL["clock"], band.id)
        self.clock: int = row[0] if row else 0
        self.first_clock = self.clock
        self.times: dict[str, int] = {}
        """Virtual times moved by this claim."""
        self.turns: dict[tuple[int, str], Turn] = {}
        self.stale = 0
        self._heap: list[Entry] = []
        self._bounds: dict[int, tuple[int, str]] = {}
        """Lanes with more turns than were read: the last place read."""
        self._wake()
        for lane in band.lanes:
            self._read_lane(lane, (_BEFORE_ALL, ""))

    def head(self) -> Turn | None:
        """Give the turn that is next, or None when nobody in this line is due."""
        while True:
            entry = self._first()
            if entry is None:
                return None
            turn = entry[4]
            if entry is not turn.entry:
                heapq.heappop(self._heap)
                continue
            time = self.times.get(turn.tenant, turn.share)
            if turn.time < time:
                self.stale += 1
                if self.stale > stride.STALE_LIMIT:
                    return None
                turn.time, turn.changed = time, True
                heapq.heappop(self._heap)
                self._stand(turn, turn.due, turn.seq)
                continue
            if self._is_due(turn):
                return turn
            heapq.heappop(self._heap)
            turn.entry, turn.changed = None, True

    def take(self, turn: Turn) -> Row:
        """Take the turn's first job, move its tenant on, and put the turn where it belongs now."""
        job = turn.jobs.popleft()
        moved = stride.step(job[COST], turn.weight)
        time = self.times.get(turn.tenant, turn.share)
        time, self.clock = stride.hand_out(time, self.clock, moved)
        self.times[turn.tenant] = turn.time = time
        turn.changed = True
        turn.entry = None
        if self._is_due(turn):
            following = turn.jobs[0]
            self._stand(turn, following[DUE], following[SEQ])
        return job

    def longest_waiting(self, before: int) -> Turn | None:
        """Give the asked-for turn whose head has been due longest, if since before ``before``."""
        best: Turn | None = None
        for lane in self.band.lanes:
            for turn in self._longest_of(lane, before):
                if best is None or (turn.due, turn.seq) < (best.due, best.seq):
                    best = turn
        return best

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def _wake(self) -> None:
        tx, limit = self._tx, stride.WAKE_LIMIT
        due: list[Row] = []
        for (lane,) in tx.all(SQL["rested"], self.band.all_lanes, tx.now):
            due.extend(tx.all(SQL["asleep"], lane, tx.now, limit))
        due.sort()
        tx.many(SQL["wake"], [(row[2], row[3], self.band.id) for row in due[:limit]])

    def _read_lane(self, lane: int, after: tuple[int, str]) -> None:
        limit = min(self._room, _PAGE_LIMIT)
        rows = self._tx.all(SQL["in_line"], lane, self.band.id, *after, limit)
        if len(rows) == limit:
            self._bounds[lane] = (rows[-1][1], rows[-1][0])
        else:
            self._bounds.pop(lane, None)
        for row in rows:
            if (lane, row[0]) not in self.turns:
                turn = self._enter(lane, row)
                self._stand(turn, turn.due, turn.seq)

    def _longest_of(self, lane: int, before: int) -> list[Turn]:
        """Give the turns of a lane that may have waited longest: the touched, one other."""
        touched = [t for t in self.turns.values() if t.lane == lane and t.changed]
        found = [t for t in touched if t.entry and t.due < before and self._is_due(t)]
        limit = len(touched) + 1
        for row in self._tx.all(SQL["longest"], lane, self.band.id, before, limit):
            turn = self.turns.get((lane, row[0]))
            if turn is None:
                turn = self._enter(lane, row)
                self._stand(turn, turn.due, turn.seq)
            if not turn.changed and self._is_due(turn):
                found.append(turn)
                break
        return found

    def _first(self) -> Entry | None:
        """Give the first entry in line, reading on where lanes may hold an earlier one."""
        while True:
            entry = self._heap[0] if self._heap else None
            behind = [
                lane for lane, bound in self._bounds.items() if entry is None or entry[:2] > bound
            ]
            if not behind:
                return entry
            for lane in behind:
                self._read_lane(lane, self._bounds[lane])

    def _enter(self, lane: int, row: Row) -> Turn:
        turn = Turn(lane, row[0], row[1], row[2], row[3], row[4], row[5])
        self.turns[lane, turn.tenant] = turn
        return turn

    def _stand(self, turn: Turn, due: int, seq: int) -> None:
        turn.due, turn.seq = due, seq
        turn.entry = (turn.time, turn.tenant, due, seq, turn)
        heapq.heappush(self._heap, turn.entry)

    def _is_due(self, turn: Turn) -> bool:
        """Tell whether the turn has a due job at its head, reading its jobs as needed."""
        if not turn.jobs and not turn.exhausted:
            self._read_jobs(turn)
        return bool(turn.jobs) and turn.jobs[0][DUE] <= self._tx.now

    def _read_jobs(self, turn: Turn) -> None:
        # One more than its likely share: the one after the last taken is the turn's new head.
        share = self._room // max(1, len(self._heap)) + 2
        limit = min(self._room + 1, max(share, turn.read * 2))
        rows = self._tx.all(SQL["waiting"], turn.lane, turn.tenant, *turn.last, limit)
        turn.jobs.extend(rows)
        turn.read = limit
        if rows:
            turn.last = (rows[-1][DUE], rows[-1][SEQ])
        turn.exhausted = len(rows) < limit
