"""hold: keep jobs from being handed out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import records, turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.changes import Current, each
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("hold")


def hold(tx: Transaction, ids: Sequence[str], by: str, reason: str) -> list[Changed]:
    """Hold each; the first mark stays."""
    mark = records.mark_to_text(by, reason, tx.now)
    left: list[tuple[int, str]] = []

    def decide(job: Current) -> ChangeAnswer:
        if job.terminal:
            return ChangeAnswer.CONFLICT
        if job.held:
            return ChangeAnswer.ALREADY
        if job.in_turn:
            left.append((job.lane, job.tenant))
        tx.run(SQL["hold"], mark, job.seq)
        job.held = True
        return ChangeAnswer.DONE

    answers = each(tx, ids, decide)
    turns.recount(tx, left)
    return answers
