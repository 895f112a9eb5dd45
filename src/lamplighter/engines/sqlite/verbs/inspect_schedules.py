"""The reads of schedules: one, many, and the runs of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model.ids import schedule_key, split_schedule_key
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.rows import run_of, schedule_of
from lamplighter.port.schedules import RunPage, SchedulePage, ScheduleRecord
from lamplighter.port.stretches import matches, stretches
from lamplighter.port.values import SCAN_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.schedules import ScheduleFilter
    from lamplighter.port.stretches import Stretch

SQL = load("inspect_schedules")


def schedule(tx: Transaction, tenant: str, schedule_id: str) -> ScheduleRecord | None:
    """Return one schedule."""
    row = tx.one(SQL["schedule"], tenant, schedule_id)
    return None if row is None else schedule_of(row)


def schedules(
    tx: Transaction, which: ScheduleFilter, limit: int, cursor: str | None
) -> SchedulePage:
    """List schedules by key; a filter looks at a bounded stretch per page."""
    found: list[ScheduleRecord] = []
    scanned = 0
    for stretch in stretches(which, cursor):
        for record in _from(tx, stretch, max(100, limit)):
            scanned += 1
            if matches(which, record):
                found.append(record)
            if len(found) == limit or scanned == SCAN_LIMIT:
                return SchedulePage(found, schedule_key(record.tenant, record.id))
    return SchedulePage(found, None)


def _from(tx: Transaction, stretch: Stretch, step: int) -> Iterator[ScheduleRecord]:
    """Read the schedules of a stretch, some at a time."""
    key, after = stretch.after or stretch.prefix, stretch.after is not None
    while True:
        rows = tx.all(SQL["schedules"], *split_schedule_key(key), after, step)
        for row in rows:
            record = schedule_of(row)
            key, after = schedule_key(record.tenant, record.id), True
            if not key.startswith(stretch.prefix):
                return
            yield record
        if len(rows) < step:
            return


def runs(tx: Transaction, tenant: str, schedule_id: str, limit: int, cursor: str | None) -> RunPage:
    """List a schedule's runs, the latest due first."""
    (before,) = place_of(cursor, 1)
    known = tx.one(SQL["number"], tenant, schedule_id)
    if known is None:
        return RunPage([], None)
    rows = tx.all(SQL["runs"], known[0], before, limit)
    following = cursor_of((rows[-1][0],)) if len(rows) == limit else None
    return RunPage([run_of(row, schedule_id) for row in rows], following)
