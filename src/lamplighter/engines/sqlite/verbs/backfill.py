"""backfill: begin to run occurrences of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import backfill_of, backfill_to_text, is_nobody

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.schedules import Backfill

SQL = load("backfill")


def backfill(tx: Transaction, schedule_id: str, wanted: Backfill, tenant: str) -> ScheduleChanged:
    """Note what is to be run, unless something is under way."""
    row = None if is_nobody(tenant) else tx.one(SQL["current"], tenant, schedule_id)
    if row is None:
        return ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN)
    number, text = row
    before = backfill_of(text)
    if before is not None:
        same = _what(before) == _what(wanted)
        answer = ScheduleAnswer.ALREADY if same else ScheduleAnswer.CONFLICT
        return ScheduleChanged(schedule_id, answer)
    tx.run(SQL["begin"], backfill_to_text(wanted), tx.now, number)
    return ScheduleChanged(schedule_id, ScheduleAnswer.DONE)


def _what(backfill: Backfill) -> tuple[int, int, int]:
    """Give what was asked for, without how far it has come."""
    return backfill.from_ms, backfill.to_ms, backfill.limit
