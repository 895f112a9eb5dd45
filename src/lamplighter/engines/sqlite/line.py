"""The line of one (queue, level) during a claim: whose turn it is, read from the store in pages.

Nothing is written here; `verbs/claim.py` writes what was taken once the claim is full.
"""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model import stride
from lamplighter.model.fields import JOB

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.catalog import AskedBand
    from lamplighter.engines.sqlite.transaction import Row, Transaction

SQL = load("claim")

DUE, ARGS, COST = map(JOB.index, ("due", "args", "cost"))
SEQ, LEASE = len(JOB), len(JOB) + 1
"""Where these stand in a row of a job that may be handed out."""
_TURN = _TENANT = len(JOB) + 2
_TIME = _TENANT + 1
_BEFORE_ALL = -1
_PAGE_LIMIT = 128

Entry = tuple[int, str, int, int, "Turn"]
"""Place in line: time, tenant, due and sequence of the head, and the turn itself."""


class Room:
    """What a claim may still hand out, in all its queues together."""

    __slots__ = ("_bytes", "_largest", "_limit", "jobs")

    def __init__(self, jobs: int, size: int) -> None:
        self.jobs = jobs
        """Jobs that may still be taken; 0 when the bytes are used up."""
        self._limit = jobs
        self._bytes = size
        self._largest = 1

    def take(self, size: int) -> None:
        """Count a job with so many bytes of arguments as taken."""
        self._bytes -= size
        self.jobs = self.jobs - 1 if self._bytes > 0 else 0
        self._largest = max(self._largest, size)

    @property
    def page(self) -> int:
        """Jobs worth reading at once: if they are as large as the largest, no more than fit."""
        return max(1, min(self._limit, self._bytes // self._largest + 1))


class Turn:
    """A (lane, tenant) as the claim sees it.

    ``jobs`` holds its next jobs as far as they were read, the first of them from the page that
    brought the turn. With more than one tenant a turn is rarely reached twice in a claim, so what
    follows the jobs taken is looked up only when it is, or for all turns together at the end.
    """

    __slots__ = (
        "changed", "due", "entry", "exhausted", "jobs", "lane", "last", "read", "seq", "share",
        "tenant", "time", "weight",
    )  # fmt: skip

    def __init__(self, lane: int, row: Row) -> None:
        self.lane = lane
        self.tenant: str
        self.time: int
        self.due: int
        self.seq: int
        self.share: int
        self.weight: int
        self.tenant, self.time, self.due, self.seq, self.share, self.weight = row[_TURN:]
        self.entry: Entry | None = None
        """Its valid place in the heap; an older entry of the same turn is skipped when met."""
        self.jobs: list[Row] = [row]
        """Jobs read and not taken, the next one last."""
        self.last = (self.due, self.seq)
        """Due time and sequence of the last job read."""
        self.read = 0
        """Size of the last page of jobs; the next one is twice as large."""
        self.exhausted = False
        self.changed = False

    @property
    def unknown(self) -> bool:
        """Whether nobody has looked yet what follows the jobs taken."""
        return not self.jobs and not self.exhausted

    def __lt__(self, other: Turn) -> bool:
        return self.lane < other.lane


class Line:
    """All turns of one band that this claim may take from, in the order of the stride."""

    def __init__(self, tx: Transaction, band: AskedBand, room: Room) -> None:
        self._tx = tx
        self._room = room
        self.band = band
        self.clock = tx.number(SQL["clock"], band.id)
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
        """Return the turn that is next, or None when nobody in this line is due."""
        while True:
            entry = self._first()
            if entry is None:
                return None
            turn = entry[4]
            if entry is not turn.entry:
                heapq.heappop(self._heap)
                continue
            if turn.unknown:
                # Its first job was taken before: only now it matters what comes after it.
                heapq.heappop(self._heap)
                turn.entry = None
                if self._is_due(turn):
                    self._stand(turn)
                continue
            time = self.times.get(turn.tenant, turn.share)
            if turn.time < time:
                self.stale += 1
                if self.stale > stride.STALE_LIMIT:
                    return None
                turn.time, turn.changed = time, True
                heapq.heappop(self._heap)
                self._stand(turn)
                continue
            if self._is_due(turn):
                return turn
            heapq.heappop(self._heap)
            turn.entry, turn.changed = None, True

    def take(self, turn: Turn, *, out_of_turn: bool) -> Row:
        """Take the turn's first job, move its tenant on, and put the turn where it belongs now."""
        job = turn.jobs.pop()
        moved = stride.step(job[COST], turn.weight)
        time = self.times.get(turn.tenant, turn.share)
        time, self.clock = stride.hand_out(time, self.clock, moved, out_of_turn=out_of_turn)
        self.times[turn.tenant] = turn.time = time
        turn.changed = True
        turn.entry = None
        if turn.unknown:
            turn.entry = (time, turn.tenant, _BEFORE_ALL, _BEFORE_ALL, turn)
            heapq.heappush(self._heap, turn.entry)
        elif self._is_due(turn):
            self._stand(turn)
        return job

    def heads(self) -> None:
        """Look up what follows in all turns of which that is still unknown."""
        unknown = [turn for turn in self.turns.values() if turn.changed and turn.unknown]
        if not unknown:
            return
        given = json.dumps([(t.lane, t.tenant, *t.last) for t in unknown])
        found = {row[0]: (row[1], row[2]) for row in self._tx.all(SQL["heads"], given)}
        for index, turn in enumerate(unknown):
            head = found.get(index)
            turn.exhausted = True
            turn.entry = None
            if head is not None:
                turn.due, turn.seq = head
                turn.jobs.append(())
                if turn.due <= self._tx.now:
                    turn.entry = (turn.time, turn.tenant, *head, turn)

    def longest_waiting(self, before: int) -> Turn | None:
        """Return the asked-for turn whose head has been due longest, if since before ``before``."""
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
        limit = min(self._room.page, _PAGE_LIMIT)
        rows = self._tx.all(SQL["in_line"], lane, self.band.id, *after, limit)
        if len(rows) == limit:
            self._bounds[lane] = (rows[-1][_TIME], rows[-1][_TENANT])
        else:
            self._bounds.pop(lane, None)
        for row in rows:
            if (lane, row[_TENANT]) not in self.turns:
                self._stand(self._enter(lane, row))

    def _longest_of(self, lane: int, before: int) -> list[Turn]:
        """Return the turns of a lane that may have waited longest: the touched, one other."""
        touched = [t for t in self.turns.values() if t.lane == lane and t.changed]
        for turn in touched:
            # What follows is due no earlier than what was taken: most need no look.
            if turn.entry is not None and turn.unknown and turn.due < before:
                turn.entry = None
                if self._is_due(turn):
                    self._stand(turn)
        found = [t for t in touched if t.entry and t.due < before and t.jobs]
        limit = len(touched) + 1
        for row in self._tx.all(SQL["longest"], lane, self.band.id, before, limit):
            turn = self.turns.get((lane, row[_TENANT]))
            if turn is None:
                turn = self._enter(lane, row)
                self._stand(turn)
            if not turn.changed and self._is_due(turn):
                found.append(turn)
                break
        return found

    def _first(self) -> Entry | None:
        """Return the first entry in line, reading on where lanes may hold an earlier one."""
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
        turn = Turn(lane, row)
        self.turns[lane, turn.tenant] = turn
        return turn

    def _stand(self, turn: Turn) -> None:
        """Put a turn in line, by its time and its first job."""
        turn.entry = (turn.time, turn.tenant, turn.due, turn.seq, turn)
        heapq.heappush(self._heap, turn.entry)

    def _is_due(self, turn: Turn) -> bool:
        """Tell whether the turn has a due job at its head, reading its jobs as needed."""
        if turn.unknown:
            self._read_jobs(turn)
        if not turn.jobs:
            return False
        head = turn.jobs[-1]
        turn.due, turn.seq = head[DUE], head[SEQ]
        return turn.due <= self._tx.now

    def _read_jobs(self, turn: Turn) -> None:
        # One more than its likely share: the one after the last taken is the turn's new head.
        room = self._room.page
        share = room // max(1, len(self._heap)) + 2
        limit = min(room + 1, max(share, turn.read * 2))
        rows = self._tx.all(SQL["waiting"], turn.lane, turn.tenant, *turn.last, limit)
        if rows:
            turn.last = (rows[-1][DUE], rows[-1][SEQ])
        rows.reverse()
        turn.jobs = rows
        turn.read = limit
        turn.exhausted = len(rows) < limit
