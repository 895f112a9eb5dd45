"""unhold_schedules: let held schedules go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.wishes import Current, each
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("unhold_schedules")


def unhold_schedules(
    tx: Transaction,
    ids: Sequence[str],
    by: str,  # noqa: ARG001 - the operator's name is told by the event
    reason: str,  # noqa: ARG001 - as above
    tenant: str,
) -> list[ScheduleChanged]:
    """Unhold each, due now."""

    def decide(schedule: Current) -> ScheduleAnswer:
        if not schedule.held:
            return ScheduleAnswer.ALREADY
        tx.run(SQL["unhold"], tx.now, schedule.number)
        schedule.held = False
        return ScheduleAnswer.DONE

    return each(tx, ids, tenant, decide)
