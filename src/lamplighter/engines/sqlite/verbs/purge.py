"""purge: remove terminal jobs, whatever their age."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.changes import Current, each
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction

SQL = load("purge")


def purge(tx: Transaction, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Remove each; its idempotency key stays and answers `gone`."""
    gone: set[str] = set()

    def decide(job: Current) -> ChangeAnswer:
        if job.id in gone:
            return ChangeAnswer.UNKNOWN
        if not job.terminal:
            return ChangeAnswer.CONFLICT
        remove(tx, [(job.seq, job.id)])
        gone.add(job.id)
        return ChangeAnswer.DONE

    return [
        replace(answer, state=None) if answer.id in gone else answer
        for answer in each(tx, ids, decide)
    ]


def remove(tx: Transaction, jobs: Sequence[Row]) -> None:
    """Delete jobs, given as (seq, id), with their history, logs and progress."""
    tx.many(SQL["job"], [(seq,) for seq, _ in jobs])
    ids = [(job_id,) for _, job_id in jobs]
    for kept in ("history", "log", "progress"):
        tx.many(SQL[kept], ids)
