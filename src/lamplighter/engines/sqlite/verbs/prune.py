"""prune: retention, one bounded step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.engines.sqlite.verbs.purge import remove
from lamplighter.port.values import RETENTION_FLOOR_MS, Pruned

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.values import Retention

SQL = load("prune")
_REQUEST_MS = 3_600_000
_WORKER_MS = 86_400_000
_TYPE_MS = 7 * 86_400_000


def prune(tx: Transaction, retention: Retention, limit: int) -> Pruned:
    """Remove by age, by count, then what else has aged out."""
    now = tx.now
    young = now - RETENTION_FLOOR_MS
    jobs = tx.all(SQL["finished"], min(young, now - retention.finished_ms), limit)
    jobs += tx.all(SQL["dead"], min(young, now - retention.dead_ms), limit - len(jobs))
    remove(tx, [(row[0], row[1]) for row in jobs])
    surplus = _beyond_count(tx, retention.finished_count, young, limit - len(jobs))
    remove(tx, surplus)
    keys = tx.run(SQL["keys"], now - retention.key_ms, limit)
    requests = tx.run(SQL["requests"], now - _REQUEST_MS, limit)
    shares = tx.run(SQL["shares"], limit)
    others = requests + shares
    others += tx.run(SQL["workers"], now - _WORKER_MS)
    others += tx.run(SQL["worker_types"])
    others += tx.run(SQL["types"], now - _TYPE_MS)
    removed = len(jobs) + len(surplus)
    return Pruned(
        jobs=removed, keys=keys, others=others, more=limit in (removed, keys, requests, shares)
    )


def _beyond_count(tx: Transaction, count: int, young: int, limit: int) -> list[tuple[int, str]]:
    """Give the oldest finished jobs beyond the allowed count, but nothing too young."""
    row = tx.one(SQL["how_many"])
    surplus = min(limit, (row[0] if row else 0) - count)
    if surplus <= 0:
        return []
    return [(seq, job_id) for seq, job_id in tx.all(SQL["finished"], young, surplus)]
