"""What the operators' verbs on schedules share: read them, decide each, answer in order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import is_nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("wishes")


@dataclass(slots=True)
class Current:
    """A schedule as an operator's verb finds it; updated when one call names it twice."""

    number: int
    held: bool
    gone: bool = False


def each(
    tx: Transaction,
    ids: Sequence[str],
    tenant: str,
    decide: Callable[[Current], ScheduleAnswer],
) -> list[ScheduleChanged]:
    """Let ``decide`` act on each schedule of the tenant; it may change what it is given."""
    if is_nobody(tenant):
        return [ScheduleChanged(one, ScheduleAnswer.UNKNOWN) for one in ids]
    rows = tx.all(SQL["current"], json.dumps(list(ids)), tenant)
    found = {row[0]: Current(row[1], bool(row[2])) for row in rows}
    answers: list[ScheduleChanged] = []
    for schedule_id in ids:
        schedule = found.get(schedule_id)
        if schedule is None or schedule.gone:
            answers.append(ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN))
        else:
            answers.append(ScheduleChanged(schedule_id, decide(schedule)))
    return answers
