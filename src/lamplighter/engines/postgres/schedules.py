"""Schedules: rows to values and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lamplighter.port import texts
from lamplighter.port.schedules import Backfill, ScheduleRecord

WIDTH = 17
"""How many columns `record_of` reads; statements list them first."""


def record_of(row: Sequence[Any]) -> ScheduleRecord:
    """Build a record from the columns of the view `seen_schedule`."""
    return ScheduleRecord(
        id=row[0],
        spec=row[1],
        tenant=row[2],
        type=row[3],
        version=row[4],
        cursor_ms=row[5],
        due_ms=row[6],
        created_at_ms=row[7],
        changed_at_ms=row[8],
        fired=row[9],
        skipped=row[10],
        failures=row[11],
        last_due_ms=row[12],
        last_job=row[13],
        hold=texts.mark_of(row[14]),
        backfill=None if row[15] is None else backfill_of(row[15]),
        zones=row[16],
    )


def backfill_to_text(backfill: Backfill) -> str:
    """Write a backfill; `sql/backfill.sql` and `has_room` in sql/fire.sql read it."""
    return json.dumps(
        {
            "from": backfill.from_ms,
            "to": backfill.to_ms,
            "cursor": backfill.cursor_ms,
            "limit": backfill.limit,
            "made": backfill.made,
        }
    )


def backfill_of(text: str) -> Backfill:
    """Read a backfill."""
    values = json.loads(text)
    return Backfill(
        from_ms=values["from"],
        to_ms=values["to"],
        cursor_ms=values["cursor"],
        limit=values["limit"],
        made=values["made"],
    )
