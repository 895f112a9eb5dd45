"""claim: hand out due jobs, fairly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import moves
from lamplighter.engines.sqlite.line import ARGS, LEASE, SEQ, Line, Room, Turn
from lamplighter.engines.sqlite.statements import load
from lamplighter.model import stride
from lamplighter.model.job import Claim, Fence
from lamplighter.port import rows
from lamplighter.port.values import Claimed

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.port.values import ClaimRequest

SQL = load("claim")

_NEVER = 9_000_000_000_000_000


def claim(tx: Transaction, request: ClaimRequest) -> Claimed:
    """Fill the queues' quotas in order, then the rest in order; write what was handed out."""
    if tx.one(SQL["repeated"], request.nonce):
        return Claimed(_still_running(tx, request.nonce), 0)
    counters: dict[str, _Counter] = {}
    room = Room(request.limit, request.max_bytes)
    for quotas in (True, False):
        for queue, quota in request.queues:
            if room.jobs <= 0:
                break
            counter = counters.get(queue)
            if counter is None:
                counter = counters[queue] = _Counter(tx, request, queue, room)
            counter.hand_out(quota if quotas else room.jobs)
    claims = _write(tx, request, list(counters.values()))
    return Claimed(claims, _poll_after(tx, request))


class _Counter:
    """Where one queue's jobs are handed out."""

    def __init__(self, tx: Transaction, request: ClaimRequest, queue: str, room: Room) -> None:
        self._tx = tx
        self._room = room
        self.queue = queue
        row = tx.one(SQL["queue"], queue)
        self.handouts: int = row[0] if row else 0
        self._before = tx.now - (row[1] if row else 0)
        self._may_starve = True
        asked = tx.catalog.asked(request, queue)
        self.lines = [Line(tx, band, room) for band in asked.bands]
        self.taken: list[tuple[int, Row, int]] = []
        """What was handed out: number, job row, lane."""

    def hand_out(self, quota: int) -> None:
        """Take up to ``quota`` jobs, while there is room."""
        end = len(self.taken) + min(quota, self._room.jobs)
        while len(self.taken) < end and self._room.jobs > 0:
            number = self.handouts + 1
            found = self._starved(number) or self._first_in_line()
            if found is None:
                break
            line, turn, out_of_turn = found
            job = line.take(turn, out_of_turn=out_of_turn)
            self.taken.append((number, job, turn.lane))
            self.handouts = number
            self._room.take(len(job[ARGS]))

    def _starved(self, number: int) -> tuple[Line, Turn, bool] | None:
        """Return who has waited longest, if this hand-out is theirs and it was too long."""
        if not self._may_starve or not stride.takes_the_longest_waiting(number):
            return None
        found: tuple[Line, Turn, bool] | None = None
        for line in self.lines:
            turn = line.longest_waiting(self._before)
            if turn is None:
                continue
            if found is None or (turn.due, turn.seq) < (found[1].due, found[1].seq):
                found = (line, turn, True)
        # Heads only get later while jobs are taken: nobody starves in this claim any more.
        self._may_starve = found is not None
        return found

    def _first_in_line(self) -> tuple[Line, Turn, bool] | None:
        """Return the first turn of the highest level that has one."""
        for line in self.lines:
            turn = line.head()
            if turn is not None:
                return line, turn, False
        return None


def _write(tx: Transaction, request: ClaimRequest, counters: list[_Counter]) -> list[Claim]:
    claims: list[Claim] = []
    runs: list[Row] = []
    expires, by_id = tx.now + request.lease_ms, tx.catalog.by_id
    nonce, worker = request.nonce, request.worker
    for counter in counters:
        _write_lines(tx, counter.lines)
        if not counter.taken:
            continue
        tx.run(SQL["set_handouts"], counter.handouts, counter.queue)
        for number, row, lane in counter.taken:
            lease = row[LEASE] + 1
            runs.append((lease, nonce, worker, number, tx.now, expires, request.lease_ms, row[SEQ]))
            claims.append(
                Claim(
                    job=rows.job_of(row, by_id(lane)),
                    fence=Fence(lease, nonce),
                    worker=worker,
                    handout=number,
                ),
            )
    if runs:
        tx.run(SQL["note_request"], nonce, tx.now)
        moves.start(tx, runs)
    return claims


def _write_lines(tx: Transaction, lines: list[Line]) -> None:
    for line in lines:
        line.heads()
        done: list[Row] = []
        moved: list[Row] = []
        for turn in line.turns.values():
            if not turn.changed:
                continue
            if turn.entry is not None:
                moved.append((1, turn.time, turn.due, turn.seq, turn.lane, turn.tenant))
            elif turn.jobs:
                moved.append((0, turn.time, turn.due, turn.seq, turn.lane, turn.tenant))
            else:
                done.append((turn.lane, turn.tenant))
        if done:
            tx.many(SQL["turn_done"], done)
        if moved:
            tx.many(SQL["turn"], moved)
        if line.times:
            band = line.band.id
            tx.many(SQL["share"], [(band, tenant, time) for tenant, time in line.times.items()])
        if line.clock != line.first_clock:
            tx.run(SQL["set_clock"], line.clock, line.band.id)


def _poll_after(tx: Transaction, request: ClaimRequest) -> int | None:
    soonest = _NEVER
    for queue, _ in request.queues:
        row = tx.one(SQL["next_due"], tx.catalog.asked(request, queue).lanes)
        if row is not None and row[0] is not None:
            soonest = min(soonest, row[0])
    return None if soonest == _NEVER else max(0, soonest - tx.now)


def _still_running(tx: Transaction, nonce: str) -> list[Claim]:
    found = tx.all(SQL["still_running"], nonce)
    return [rows.claim_of(row, tx.catalog.by_id(row[-1])) for row in found]
