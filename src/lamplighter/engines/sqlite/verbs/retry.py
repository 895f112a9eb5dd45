"""retry: make waiting jobs due now; a dead one is replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.changes import Current, each
from lamplighter.engines.sqlite.verbs.replay import run_again
from lamplighter.model.job import JobState
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("retry")


def retry(tx: Transaction, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Make each due now."""
    back: list[tuple[int, str, int, int]] = []

    def decide(job: Current) -> ChangeAnswer:
        if job.state is JobState.DEAD:
            run_again(tx, job, back)
            return ChangeAnswer.DONE
        if job.state is not JobState.WAITING:
            return ChangeAnswer.CONFLICT
        if job.due <= tx.now:
            return ChangeAnswer.ALREADY
        tx.run(SQL["retry"], tx.now, job.seq)
        job.due = tx.now
        if job.in_turn:
            back.append((job.lane, job.tenant, job.due, job.seq))
        return ChangeAnswer.DONE

    answers = each(tx, ids, decide)
    turns.place(tx, back)
    return answers
