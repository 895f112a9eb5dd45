"""put_schedules: create schedules or change them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.schedules import Put, PutAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.schedules import NewSchedule

SQL = load("put_schedules")
Key = tuple[str, str]
"""Tenant and id."""
What = tuple[str, str]
"""Spec and type: what makes schedules of one key equal."""


@dataclass(slots=True)
class _Known:
    """A schedule as a put finds it; updated when one call names it twice."""

    number: int
    version: int
    what: What


def put_schedules(tx: Transaction, schedules: Sequence[NewSchedule]) -> list[Put]:
    """Put each, in order."""
    keys = json.dumps([(schedule.tenant, schedule.id) for schedule in schedules])
    known = {row[:2]: _Known(row[2], row[3], row[4:]) for row in tx.all(SQL["known"], keys)}
    return [_put(tx, schedule, known) for schedule in schedules]


def _put(tx: Transaction, schedule: NewSchedule, known: dict[Key, _Known]) -> Put:
    key, what = (schedule.tenant, schedule.id), (schedule.spec, schedule.type)
    values = (*what, schedule.due_ms, schedule.zones, tx.now)
    found = known.get(key)
    refused = _refused(schedule, found, what)
    if refused is not None:
        return refused
    if found is None:
        row = tx.one(SQL["insert"], *key, *values, _cursor(tx.now, schedule.first_ms))
        assert row is not None  # noqa: S101 - an INSERT with RETURNING gives a row
        known[key] = _Known(row[0], 1, what)
        return Put(schedule.id, PutAnswer.CREATED, 1)
    if found.what == what:
        return Put(schedule.id, PutAnswer.ALREADY, found.version)
    tx.run(SQL["change"], *values, found.number)
    found.version, found.what = found.version + 1, what
    return Put(schedule.id, PutAnswer.CHANGED, found.version)


def _refused(schedule: NewSchedule, found: _Known | None, what: What) -> Put | None:
    """Say what keeps it from being put, if what is known is not what was expected."""
    version = schedule.expect_version
    if found is None:
        return None if version is None else Put(schedule.id, PutAnswer.UNKNOWN, 0)
    if version is not None and found.version != version and found.what != what:
        return Put(schedule.id, PutAnswer.CONFLICT, found.version)
    return None


def _cursor(now: int, first_ms: int | None) -> int:
    """Begin now; or before a first occurrence that is past by now, for then it was missed."""
    return now if first_ms is None else min(now, first_ms - 1)
