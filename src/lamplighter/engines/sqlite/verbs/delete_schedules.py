"""delete_schedules: remove schedules with what they are about to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.change import change
from lamplighter.engines.sqlite.verbs.wishes import Current, each
from lamplighter.model.changes import Action, table_of
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("delete_schedules")
QUEUED = load("runs")["queued"]


def delete_schedules(
    tx: Transaction, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Remove each, and cancel its queued jobs."""
    queued: list[str] = []

    def decide(schedule: Current) -> ScheduleAnswer:
        queued.extend(job_id for _, job_id in tx.all(QUEUED, schedule.number, None))
        tx.run(SQL["delete"], schedule.number)
        tx.run(SQL["leave_runs"], schedule.number)
        schedule.gone = True
        return ScheduleAnswer.DONE

    answers = each(tx, ids, tenant, decide)
    change(tx, queued, table_of(Action.CANCEL), by, reason)
    return answers
