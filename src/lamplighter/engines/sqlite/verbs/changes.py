"""What the operators' verbs share: read the jobs, decide each, answer in order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model.job import TERMINAL, JobState
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("changes")


@dataclass(slots=True)
class Current:
    """A job as an operator's verb finds it; updated when one call names it twice."""

    id: str
    seq: int
    state: JobState
    lane: int
    tenant: str
    due: int
    held: bool
    cancelling: bool
    schedule: str | None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def in_turn(self) -> bool:
        """Whether it stands in its turn."""
        return self.state is JobState.WAITING and not self.held


def each(
    tx: Transaction, ids: Sequence[str], decide: Callable[[Current], ChangeAnswer]
) -> list[Changed]:
    """Let ``decide`` act on each job that exists; it may change what it is given."""
    found = {
        row[0]: Current(
            id=row[0],
            seq=row[1],
            state=JobState(row[2]),
            lane=row[3],
            tenant=row[4],
            due=row[5],
            held=bool(row[6]),
            cancelling=bool(row[7]),
            schedule=row[8],
        )
        for row in tx.all(SQL["current"], json.dumps(list(ids)))
    }
    answers: list[Changed] = []
    for job_id in ids:
        job = found.get(job_id)
        if job is None:
            answers.append(Changed(job_id, ChangeAnswer.UNKNOWN, None))
        else:
            answer = decide(job)
            answers.append(Changed(job_id, answer, job.state))
    return answers
