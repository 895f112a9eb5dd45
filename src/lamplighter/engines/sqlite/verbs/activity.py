"""tally, activity, standing: what happened by the minute, and what waits as a whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.inspect import oldest_head
from lamplighter.model import activity as days
from lamplighter.model.activity import MINUTE_MS, MOST_MINUTES, Minute, Tally
from lamplighter.port.activity import Oldest, Standing
from lamplighter.port.values import COUNT_LIMIT

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("activity")

_FORGOTTEN = 100
"""Minutes, and workers, that one tally forgets."""


def tally(tx: Transaction, worker: str, number: int, tally: Tally) -> bool:
    """Add what a worker has counted to the present minute, unless that was done before."""
    if tx.run(SQL["note"], worker, number, tx.now) == 0:
        return False
    minute = days.minute_of(tx.now)
    row = tx.one(SQL["minute"], minute)
    if row is None:
        before = minute - (MOST_MINUTES - 1) * MINUTE_MS
        tx.run(SQL["forget_minutes"], before, _FORGOTTEN)
        tx.run(SQL["forget_workers"], before, _FORGOTTEN)
    else:
        tally = days.added((days.tally_of(json.loads(row[0])), tally))
    tx.run(SQL["write"], minute, json.dumps(tally.numbers))
    return True


def activity(tx: Transaction, minutes: int) -> list[Minute]:
    """Read the last minutes."""
    last = days.minute_of(tx.now)
    rows = tx.all(SQL["minutes"], last - (minutes - 1) * MINUTE_MS, last)
    found = (Minute(at_ms, days.tally_of(json.loads(counts))) for at_ms, counts in rows)
    return days.filled(found, tx.now, minutes)


def standing(tx: Transaction) -> Standing:
    """Look at what waits as a whole."""
    schedule = tx.one(SQL["schedule"])
    wake = schedule[0] if schedule else None
    return Standing(
        at_ms=tx.now,
        held=tx.number(SQL["held"], COUNT_LIMIT),
        oldest=_oldest(tx),
        fire_lag_ms=0 if wake is None else max(0, tx.now - wake),
    )


def _oldest(tx: Transaction) -> Oldest | None:
    heads = [
        (*head, lane.queue)
        for lane in tx.catalog.all_lanes()
        if (head := oldest_head(tx, lane.id)) is not None
    ]
    if not heads:
        return None
    due, seq, queue = min(heads)
    row = tx.one(SQL["job"], seq)
    return None if row is None else Oldest(row[0], queue, tx.now - due)
