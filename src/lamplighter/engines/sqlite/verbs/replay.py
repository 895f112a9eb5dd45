"""replay: run terminal jobs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import runs, turns
from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.changes import Current, each
from lamplighter.model.job import JobState, base_requirement
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("replay")


def replay(tx: Transaction, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Run each again."""
    back: list[tuple[int, str, int, int]] = []

    def decide(job: Current) -> ChangeAnswer:
        if not job.terminal:
            return ChangeAnswer.CONFLICT
        run_again(tx, job, back)
        return ChangeAnswer.DONE

    answers = each(tx, ids, decide)
    turns.place(tx, back)
    return answers


def run_again(tx: Transaction, job: Current, back: list[tuple[int, str, int, int]]) -> None:
    """Begin a job's next life and note its place."""
    if job.state is JobState.SUCCEEDED:
        tx.run(SQL["keep_success"], job.seq)
    lane = tx.catalog.by_id(job.lane)
    base = base_requirement(lane.requirement)
    if base != lane.requirement:
        job.lane = tx.catalog.lane(tx, lane.queue, lane.level, lane.type, base).id
    tx.run(SQL["replay"], tx.now, job.lane, job.seq)
    tx.run(SQL["forget_progress"], job.id)
    if job.schedule is not None:
        runs.again(tx, job.id)
    job.state, job.due, job.held, job.cancelling = JobState.WAITING, tx.now, False, False
    back.append((job.lane, job.tenant, job.due, job.seq))
