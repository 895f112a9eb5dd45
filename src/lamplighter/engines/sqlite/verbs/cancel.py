"""cancel: end what waits, ask what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import records, runs, turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.changes import Current, each
from lamplighter.model.job import JobState
from lamplighter.port import texts
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("cancel")


def cancel(tx: Transaction, ids: Sequence[str], by: str, reason: str) -> list[Changed]:
    """Cancel each; a running job is only asked, and settle decides."""
    mark = records.mark_to_text(by, reason, tx.now)
    left: list[tuple[int, str]] = []
    ends: list[tuple[str, str]] = []

    def decide(job: Current) -> ChangeAnswer:
        if job.state is JobState.RUNNING:
            if job.cancelling:
                return ChangeAnswer.ALREADY
            tx.run(SQL["ask"], mark, job.seq)
            job.cancelling = True
            return ChangeAnswer.REQUESTED
        if job.state is JobState.CANCELLED:
            return ChangeAnswer.ALREADY
        if job.terminal:
            return ChangeAnswer.CONFLICT
        if job.in_turn:
            left.append((job.lane, job.tenant))
        tx.run(SQL["end"], tx.now, mark, texts.clean(reason) or "cancelled", job.seq)
        job.state = JobState.CANCELLED
        if job.schedule is not None:
            ends.append((job.id, job.state.value))
        return ChangeAnswer.DONE

    answers = each(tx, ids, decide)
    turns.recount(tx, left)
    if ends:
        runs.ended(tx, ends)
    return answers
