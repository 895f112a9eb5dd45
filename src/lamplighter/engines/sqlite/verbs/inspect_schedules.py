"""The reads of schedules: one, many, and the runs of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import records
from lamplighter.engines.sqlite.statements import load
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.rows import schedule_of
from lamplighter.port.schedules import RunPage, SchedulePage, ScheduleRecord
from lamplighter.port.values import SCAN_LIMIT

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.schedules import ScheduleFilter

SQL = load("inspect_schedules")


def schedule(tx: Transaction, schedule_id: str) -> ScheduleRecord | None:
    """Give one schedule."""
    row = tx.one(SQL["schedule"], schedule_id)
    return None if row is None else schedule_of(row)


def schedules(
    tx: Transaction, which: ScheduleFilter, limit: int, cursor: str | None
) -> SchedulePage:
    """List schedules by id; a filter looks at a bounded stretch per page."""
    name, after = which.prefix, False
    if cursor is not None and cursor >= name:
        name, after = cursor, True
    found: list[ScheduleRecord] = []
    scanned = 0
    while scanned < SCAN_LIMIT:
        step = min(SCAN_LIMIT - scanned, max(100, limit))
        rows = tx.all(SQL["schedules"], name, after, step)
        for row in rows:
            if not row[0].startswith(which.prefix):
                return SchedulePage(found, None)
            scanned += 1
            record = schedule_of(row)
            name, after = record.id, True
            if _matches(which, record):
                found.append(record)
            if len(found) == limit:
                return SchedulePage(found, name)
        if len(rows) < step:
            return SchedulePage(found, None)
    return SchedulePage(found, name)


def _matches(which: ScheduleFilter, record: ScheduleRecord) -> bool:
    return (
        (not which.tenants or record.tenant in which.tenants)
        and (not which.types or record.type in which.types)
        and (which.held is None or which.held is (record.hold is not None))
        and (which.zones_not is None or record.zones != which.zones_not)
    )


def runs(tx: Transaction, schedule_id: str, limit: int, cursor: str | None) -> RunPage:
    """List a schedule's runs, the latest due first."""
    (before,) = place_of(cursor, 1)
    known = tx.one(SQL["number"], schedule_id)
    if known is None:
        return RunPage([], None)
    rows = tx.all(SQL["runs"], known[0], before, limit)
    following = cursor_of((rows[-1][0],)) if len(rows) == limit else None
    return RunPage([records.run_of(row, schedule_id) for row in rows], following)
