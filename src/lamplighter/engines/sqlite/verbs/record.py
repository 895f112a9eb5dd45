"""record: keep what running attempts have to say, if their fences still hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port import texts
from lamplighter.port.values import Recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.model.journal import Journal
    from lamplighter.port.values import Recording

SQL = load("record")


def record(tx: Transaction, recordings: Sequence[Recording]) -> list[Recorded]:
    """Check each fence and keep what is said under it."""
    answers: list[Recorded] = []
    for one in recordings:
        held = tx.one(SQL["held"], one.id, one.fence.lease, one.fence.nonce) is not None
        if held:
            keep(tx, one.id, one.fence.lease, one.journal)
            if one.started:
                tx.run(SQL["started"], one.id, one.fence.lease)
                # A mark that the machine forgot would let the job start again.
                tx.must_last = True
        answers.append(Recorded(one.id, held))
    return answers


def keep(tx: Transaction, job_id: str, lease: int, journal: Journal) -> None:
    """Write the journal of an attempt whose fence was found to hold."""
    if journal.progress is not None:
        tx.run(SQL["progress"], job_id, lease, texts.progress_to_text(journal.progress))
    if journal.pieces:
        pieces = [(job_id, lease, piece.number, piece.data) for piece in journal.pieces]
        tx.many(SQL["piece"], pieces)
    first, end = journal.drop
    if end > first:
        tx.run(SQL["drop"], job_id, lease, first, end)
