"""due_schedules: hand out what is to be planned now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.rows import schedule_of
from lamplighter.port.schedules import DueSchedule, DueSchedules

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Row, Transaction

SQL = load("due_schedules")
_DUE, _NUMBER, _WAKE, _BACKFILLING = 6, 17, 18, 19


def due_schedules(
    tx: Transaction,
    limit: int,
    lease_ms: int,
    newest_first: bool,  # noqa: FBT001 - verbs are called by position
) -> DueSchedules:
    """Hand out up to ``limit``, and say when there is more."""
    now = tx.now
    rows = tx.all(SQL["newest" if newest_first else "longest"], now, limit)
    if rows:
        tx.many(SQL["lease"], [(now + lease_ms, row[_NUMBER]) for row in rows])
    following = tx.one(SQL["next"])
    return DueSchedules(
        schedules=[
            DueSchedule(record=schedule_of(row), backfilling=row[_BACKFILLING]) for row in rows
        ],
        now_ms=now,
        poll_after_ms=None if following is None else max(0, following[0] - now),
        oldest_ms=now - _due_since(rows[0]) if rows else 0,
    )


def _due_since(row: Row) -> int:
    """Tell since when a schedule has been due, however often it was handed out since."""
    wake: int = row[_WAKE]
    return wake if row[_DUE] is None else min(wake, row[_DUE])
