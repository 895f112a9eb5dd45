"""settle: write what claims came to, if their fences still hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import runs, turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs import record
from lamplighter.model.job import TERMINAL, JobState, next_requirement
from lamplighter.port import texts
from lamplighter.port.values import SettleAnswer, Settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.model.lifecycle import Next, Settlement

SQL = load("settle")
_RUNNING = JobState.RUNNING.value
_CANCELLED = JobState.CANCELLED.value


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settled]:
    """Check each fence, pick `next` or `cancelled`, write them all."""
    ids = json.dumps([settlement.id for settlement in settlements])
    rows: dict[str, Row] = {row[0]: row for row in tx.all(SQL["current"], ids)}
    pages = _Pages(tx)
    answers: list[Settled] = []
    settled: dict[str, tuple[int, str, JobState]] = {}
    for settlement in settlements:
        row = rows.get(settlement.id)
        answer = _refusal(settlement, row, settled.get(settlement.id), tx.now)
        if answer is None:
            assert row is not None  # noqa: S101 - `_refusal` answers for unknown jobs
            following = settlement.next
            if row[5] and settlement.cancelled is not None:
                following = settlement.cancelled
            pages.add(settlement, row, following)
            fence = settlement.fence
            settled[settlement.id] = (fence.lease, fence.nonce, following.state)
            answer = Settled(settlement.id, SettleAnswer.DONE, following.state)
            if settlement.journal is not None:
                record.keep(tx, settlement.id, fence.lease, settlement.journal)
        answers.append(answer)
    pages.write()
    return answers


def _refusal(
    settlement: Settlement, row: Row | None, earlier: tuple[int, str, JobState] | None, now: int
) -> Settled | None:
    """Answer for what must not be written; None when the fence holds."""
    if row is None:
        return Settled(settlement.id, SettleAnswer.LOST, None)
    fence = settlement.fence
    state = JobState(row[2]) if earlier is None else earlier[2]
    if (row[3], row[4]) != (fence.lease, fence.nonce):
        return Settled(settlement.id, SettleAnswer.LOST, state)
    if row[2] != _RUNNING or earlier is not None:
        return Settled(settlement.id, SettleAnswer.ALREADY, state)
    if settlement.only_if_expired and row[6] > now:
        return Settled(settlement.id, SettleAnswer.RENEWED, state)
    if settlement.only_if_unstarted and row[15] == fence.lease:
        return Settled(settlement.id, SettleAnswer.STARTED, state)
    return None


class _Pages:
    """Rows to be written, collected by statement so that each runs once for all."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._succeeded: list[Row] = []
        self._ended: list[Row] = []
        self._waiting: list[Row] = []
        self._history: list[Row] = []
        self._places: list[tuple[int, str, int, int]] = []
        self._ends: list[tuple[str, str]] = []
        """Jobs of schedules that have ended, with their states."""

    def add(self, settlement: Settlement, row: Row, following: Next) -> None:
        seq, fence, now = row[1], settlement.fence, self._tx.now
        guard = (seq, fence.lease, fence.nonce)
        if row[14] is not None and following.state in TERMINAL:
            self._ends.append((settlement.id, following.state.value))
        if following.state is JobState.SUCCEEDED:
            note = following.result_note and texts.clean(following.result_note)
            self._succeeded.append((now, following.result, note, *guard))
            return
        error = texts.error_to_text(following.error)
        fingerprint = following.error and texts.clean(following.error.fingerprint)
        counters = (
            following.attempt,
            following.crashes,
            following.losses,
            int(following.suspect),
            error,
            fingerprint,
        )
        if following.state is JobState.WAITING:
            due = now + following.delay_ms
            moves = following.suspect or following.version is not None
            lane = self._lane(row[7], following) if moves else row[7]
            self._waiting.append((due, lane, *counters, *guard))
            if not row[9]:
                self._places.append((lane, row[8], due, seq))
        else:
            reason = None if following.reason is None else texts.clean(following.reason)
            self._ended.append((following.state.value, now, reason, *counters, *guard))
        if settlement.history or following.state is not JobState.WAITING:
            self._history.append(_attempt(settlement, row, following, error, now))

    def _lane(self, number: int, following: Next) -> int:
        """Return the lane in which a job of a lane waits from now on."""
        catalog = self._tx.catalog
        lane = catalog.by_id(number)
        wanted = next_requirement(
            lane.requirement, suspect=following.suspect, version=following.version
        )
        if lane.requirement == wanted:
            return number
        return catalog.lane(self._tx, lane.queue, lane.level, lane.type, wanted).id

    def write(self) -> None:
        tx = self._tx
        for name, rows in (
            ("succeed", self._succeeded),
            ("end", self._ended),
            ("wait", self._waiting),
            ("history", self._history),
        ):
            if rows:
                tx.many(SQL[name], rows)
        if self._places:
            turns.place(tx, self._places)
        if self._ends:
            runs.ended(tx, self._ends)


def _attempt(settlement: Settlement, row: Row, following: Next, error: str | None, now: int) -> Row:
    """Build a row of history for an attempt that failed or ended its job."""
    outcome = settlement.outcome
    if following.state is JobState.CANCELLED and not settlement.history:
        outcome = _CANCELLED  # it was given back, but nobody will take it again
    lease, nonce = settlement.fence.lease, settlement.fence.nonce
    number = row[13] + 1
    generation, started, worker = row[10], row[11], row[12]
    return (
        settlement.id, generation, lease, number, worker, outcome, started, now, error, nonce,
    )  # fmt: skip
