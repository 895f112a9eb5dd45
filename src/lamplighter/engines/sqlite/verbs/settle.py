"""settle: write what claims came to, if their fences still hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import moves
from lamplighter.engines.sqlite.moves import Running
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs import record
from lamplighter.model.job import JobState
from lamplighter.port import texts
from lamplighter.port.values import SettleAnswer, Settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.model.lifecycle import Next, Settlement

SQL = load("settle")
_RUNNING = JobState.RUNNING.value
_SUCCEEDED, _WAITING = JobState.SUCCEEDED, JobState.WAITING
_CANCELLED = JobState.CANCELLED.value


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settled]:
    """Check each fence, pick `next` or `cancelled`, write them all."""
    ids = json.dumps([settlement.id for settlement in settlements])
    found = {row[0]: Running._make(row) for row in tx.all(SQL["current"], ids)}
    settled: dict[str, JobState] = {}
    stops: list[moves.Stop] = []
    attempts: list[Row] = []
    answers: list[Settled] = []
    for settlement in settlements:
        job = found.get(settlement.id)
        answer = _refusal(settlement, job, settled.get(settlement.id), tx.now)
        if answer is None:
            assert job is not None  # noqa: S101 - `_refusal` answers for unknown jobs
            following = settlement.next
            if job.cancelling and settlement.cancelled is not None:
                following = settlement.cancelled
            fence, state = settlement.fence, following.state
            error = texts.error_to_text(following.error)
            stops.append((job, (job.seq, fence.lease, fence.nonce), following, error))
            # One that succeeded stands in its job; one that is to go on is kept if it failed.
            if state is not _SUCCEEDED and (settlement.history or state is not _WAITING):
                attempts.append(_attempt(settlement, job, following, error, tx.now))
            if settlement.journal is not None:
                record.keep(tx, job.id, job.lease, settlement.journal)
            settled[job.id] = state
            answer = Settled(job.id, SettleAnswer.DONE, state)
        answers.append(answer)
    moves.stop(tx, stops)
    if attempts:
        tx.many(SQL["history"], attempts)
    return answers


def _refusal(
    settlement: Settlement, job: Running | None, earlier: JobState | None, now: int
) -> Settled | None:
    """Answer for what must not be written; None when the fence holds."""
    if job is None:
        return Settled(settlement.id, SettleAnswer.LOST, None)
    fence = settlement.fence
    state = JobState(job.state) if earlier is None else earlier
    if (job.lease, job.nonce) != (fence.lease, fence.nonce):
        return Settled(settlement.id, SettleAnswer.LOST, state)
    if job.state != _RUNNING or earlier is not None:
        return Settled(settlement.id, SettleAnswer.ALREADY, state)
    if settlement.only_if_expired and job.expires > now:
        return Settled(settlement.id, SettleAnswer.RENEWED, state)
    if settlement.only_if_unstarted and job.started == fence.lease:
        return Settled(settlement.id, SettleAnswer.STARTED, state)
    return None


def _attempt(
    settlement: Settlement, job: Running, following: Next, error: str | None, now: int
) -> Row:
    """Build a row of history, as the columns of `ATTEMPT`."""
    outcome = settlement.outcome
    if following.state is JobState.CANCELLED and not settlement.history:
        outcome = _CANCELLED  # it was given back, but nobody will take it again
    return (
        job.id, job.generation, job.lease, job.attempt + 1, job.worker, outcome, job.claimed, now,
        error, job.nonce,
    )  # fmt: skip
