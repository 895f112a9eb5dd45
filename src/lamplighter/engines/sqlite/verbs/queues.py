"""enter_queues, remove_queue: which queues there are, and who has brought them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.health import DEAD_MS
from lamplighter.port.values import ChangeAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("queues")


def enter_queues(tx: Transaction, names: Sequence[str], tenant: str, most: int) -> bool:
    """Note who brings these, unless they would have brought too many."""
    new = [name for (name,) in tx.all(SQL["new"], json.dumps(list(names)))]
    row = tx.one(SQL["brought"], tenant)
    if new and (row[0] if row else 0) + len(new) > most:
        return False
    for name in new:
        tx.run(SQL["bring"], name, tenant)
    return True


def remove_queue(tx: Transaction, name: str) -> ChangeAnswer:
    """Let an empty queue be listed no more."""
    row = tx.one(SQL["removed"], name)
    lanes = json.dumps([lane.id for lane in tx.catalog.lanes_of(name)])
    busy = tx.one(SQL["busy"], lanes)
    served = tx.one(SQL["served"], tx.now - DEAD_MS, name)
    if served or (busy and busy[0]):
        return ChangeAnswer.CONFLICT
    forgotten = tx.run(SQL["forget"], name)
    if row is not None and not row[0]:
        tx.run(SQL["remove"], name)
        tx.catalog.changed(tx)
        return ChangeAnswer.DONE
    if forgotten:
        return ChangeAnswer.DONE
    return ChangeAnswer.UNKNOWN if row is None else ChangeAnswer.ALREADY
