"""join, beat, leave, lead: who is alive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.health import DEAD_MS
from lamplighter.port.values import Beat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.values import NewWorker

SQL = load("membership")


def join(tx: Transaction, worker: NewWorker) -> Beat:
    """Enter a worker and publish its types."""
    queues = json.dumps(worker.queues)
    place = (queues, worker.slots, worker.version_slot, tx.now)
    tx.run(SQL["join"], worker.id, worker.host, worker.pid, *place)
    tx.run(SQL["forget_types"], worker.id)
    for known in worker.types:
        tx.run(SQL["knows"], worker.id, known.name, known.hash)
        options = json.dumps(dict(known.options))
        tx.run(SQL["publish"], known.name, known.hash, known.queue, known.schema, options, tx.now)
    return _answer(tx, known=True)


def beat(tx: Transaction, worker: str, running: int, unstarted: Sequence[str]) -> Beat:
    """Note a sign of life."""
    known = tx.run(SQL["beat"], tx.now, running, " ".join(unstarted), worker) > 0
    tx.run(SQL["seen"], tx.now, worker)
    return _answer(tx, known=known)


def leave(tx: Transaction, worker: str) -> None:
    """Take a worker out."""
    tx.run(SQL["leave"], worker)
    tx.run(SQL["forget_types"], worker)


def lead(tx: Transaction, role: str, holder: str, term_ms: int) -> bool:
    """Take or keep a role."""
    return tx.run(SQL["lead"], role, holder, tx.now + term_ms, tx.now) > 0


def _answer(tx: Transaction, *, known: bool) -> Beat:
    return Beat(
        known=known,
        settings_version=tx.number(SQL["version"]),
        workers=tx.number(SQL["alive"], tx.now - DEAD_MS),
    )
