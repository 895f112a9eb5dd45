"""prune: retention, one bounded step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite import moves
from lamplighter.engines.sqlite.statements import load
from lamplighter.port.values import RETENTION_FLOOR_MS, Pruned

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.port.values import Retention

SQL = load("prune")
_REQUEST_MS = 3_600_000
_WORKER_MS = 86_400_000
_TYPE_MS = 7 * 86_400_000
_PIECES = 1_000
"""Pieces of logs after which a step ends, 16 MiB at most: nobody should wait for it long."""


def prune(tx: Transaction, retention: Retention, limit: int) -> Pruned:
    """Remove by age, by count, then what else has aged out."""
    now = tx.now
    young = now - RETENTION_FLOOR_MS
    jobs = tx.all(SQL["finished"], min(young, now - retention.finished_ms), limit)
    jobs += tx.all(SQL["dead"], min(young, now - retention.dead_ms), limit - len(jobs))
    by_age = _remove(tx, jobs)
    surplus: list[Row] = []
    if by_age == len(jobs):
        surplus = _beyond_count(tx, retention.finished_count, young, limit - len(jobs))
    removed = by_age + _remove(tx, surplus)
    unfinished = removed < len(jobs) + len(surplus)
    keys = tx.run(SQL["keys"], now - retention.key_ms, limit)
    requests = tx.run(SQL["requests"], now - _REQUEST_MS, limit)
    shares = tx.run(SQL["shares"], limit)
    runs = _forget_runs(tx, limit)
    others = requests + shares + runs
    others += tx.run(SQL["workers"], now - _WORKER_MS)
    others += tx.run(SQL["worker_types"])
    others += tx.run(SQL["types"], now - _TYPE_MS)
    return Pruned(
        jobs=removed,
        keys=keys,
        others=others,
        more=unfinished or limit in (removed, keys, requests, shares, runs),
    )


def _remove(tx: Transaction, jobs: list[Row]) -> int:
    """Remove jobs, given as (seq, id), until the logs of a step are full; returns how many."""
    if not jobs:
        return 0
    ids = json.dumps([job_id for _, job_id in jobs])
    pieces = count = 0
    for (more,) in tx.all(SQL["pieces"], ids):
        pieces += more
        count += 1
        if pieces >= _PIECES:
            break
    moves.remove(tx, jobs[:count])
    return count


def _forget_runs(tx: Transaction, limit: int) -> int:
    """Remove runs of schedules that are gone; returns how many."""
    count = 0
    while count < limit and (row := tx.one(SQL["removed_schedule"])) is not None:
        count += tx.run(SQL["runs"], row[0], limit - count)
        if count < limit:
            tx.run(SQL["forget_schedule"], row[0])
    return count


def _beyond_count(tx: Transaction, count: int, young: int, limit: int) -> list[Row]:
    """Return the oldest finished jobs beyond the allowed count, but nothing too young."""
    surplus = min(limit, tx.number(SQL["how_many"]) - count)
    if surplus <= 0:
        return []
    return tx.all(SQL["finished"], young, surplus)
