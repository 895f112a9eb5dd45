"""settle: write what claims came to, if their fences still hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lamplighter.engines.sqlite import moves
from lamplighter.engines.sqlite.moves import Stop
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
_CANCELLED = JobState.CANCELLED.value


class _Job(NamedTuple):
    """A job as it was found."""

    id: str
    seq: int
    state: str
    lease: int
    nonce: str | None
    cancelling: bool
    expires: int
    """Of one that runs."""
    lane: int
    tenant: str
    held: bool
    generation: int
    claimed: int
    worker: str
    attempt: int
    schedule: str | None
    started: int


def settle(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settled]:
    """Check each fence, pick `next` or `cancelled`, write them all."""
    ids = json.dumps([settlement.id for settlement in settlements])
    found = {row[0]: _Job._make(row) for row in tx.all(SQL["current"], ids)}
    settled: dict[str, JobState] = {}
    stops: list[Stop] = []
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
            stop = _stop(settlement, job, following)
            stops.append(stop)
            if _is_kept(settlement, following.state):
                attempts.append(_attempt(settlement, job, stop, tx.now))
            if settlement.journal is not None:
                record.keep(tx, job.id, job.lease, settlement.journal)
            settled[job.id] = following.state
            answer = Settled(job.id, SettleAnswer.DONE, following.state)
        answers.append(answer)
    moves.stop(tx, stops)
    if attempts:
        tx.many(SQL["history"], attempts)
    return answers


def _refusal(
    settlement: Settlement, job: _Job | None, earlier: JobState | None, now: int
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


def _stop(settlement: Settlement, job: _Job, following: Next) -> Stop:
    fence = settlement.fence
    return Stop(
        id=job.id,
        guard=(job.seq, fence.lease, fence.nonce),
        lane=job.lane,
        tenant=job.tenant,
        held=job.held,
        schedule=job.schedule,
        next=following,
        error=texts.error_to_text(following.error),
    )


def _is_kept(settlement: Settlement, state: JobState) -> bool:
    """Tell whether the attempt gets a row of history: it failed, or ended its job otherwise."""
    if state is JobState.SUCCEEDED:
        return False
    return settlement.history or state is not JobState.WAITING


def _attempt(settlement: Settlement, job: _Job, stop: Stop, now: int) -> Row:
    """Build a row of history, as the columns of `ATTEMPT`."""
    outcome = settlement.outcome
    if stop.next.state is JobState.CANCELLED and not settlement.history:
        outcome = _CANCELLED  # it was given back, but nobody will take it again
    return (
        job.id, job.generation, job.lease, job.attempt + 1, job.worker, outcome, job.claimed, now,
        stop.error, job.nonce,
    )  # fmt: skip
