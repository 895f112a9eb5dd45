"""unhold: let held jobs go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.changes import Current, each
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("unhold")


def unhold(tx: Transaction, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Unhold each, due when it was due."""
    back: list[tuple[int, str, int, int]] = []

    def decide(job: Current) -> ChangeAnswer:
        if job.terminal:
            return ChangeAnswer.CONFLICT
        if not job.held:
            return ChangeAnswer.ALREADY
        tx.run(SQL["unhold"], job.seq)
        job.held = False
        if job.in_turn:
            back.append((job.lane, job.tenant, job.due, job.seq))
        return ChangeAnswer.DONE

    answers = each(tx, ids, decide)
    turns.place(tx, back)
    return answers
