"""hold_schedules: keep schedules from being fired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.wishes import Current, each
from lamplighter.port import texts
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("hold_schedules")


def hold_schedules(
    tx: Transaction, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Hold each; the first mark stays."""
    mark = texts.mark_to_text(by, reason, tx.now)

    def decide(schedule: Current) -> ScheduleAnswer:
        if schedule.held:
            return ScheduleAnswer.ALREADY
        tx.run(SQL["hold"], mark, schedule.number)
        schedule.held = True
        return ScheduleAnswer.DONE

    return each(tx, ids, tenant, decide)
