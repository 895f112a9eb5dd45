"""put_queue, put_tenant, put_type, enter_queues, remove_queue: what operators set, and which queues
there are. Each costs nothing in the backlog.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model import stride
from lamplighter.port import texts
from lamplighter.port.health import DEAD_MS
from lamplighter.port.values import ChangeAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings

SQL = load("settings")


def put_queue(tx: Transaction, name: str, settings: QueueSettings, by: str, reason: str) -> None:
    """Set a queue's longest wait or hold."""
    tx.run(SQL["queue"], name, settings.max_wait_ms)
    if settings.held is not None:
        tx.run(SQL["hold_queue"], _mark(tx, by, reason, held=settings.held), name)
    tx.catalog.changed(tx)


def put_tenant(tx: Transaction, name: str, settings: TenantSettings, by: str, reason: str) -> None:
    """Set a tenant's weight or hold."""
    if settings.weight is not None:
        stride.check_weight(settings.weight)
    tx.run(SQL["tenant"], name, settings.weight)
    if settings.held is not None:
        tx.run(SQL["hold_tenant"], _mark(tx, by, reason, held=settings.held), name)
        if settings.held:
            tx.run(SQL["rest_turns"], name)
        else:
            tx.run(SQL["wake_turns"], name, tx.now)
    tx.catalog.changed(tx)


def put_type(tx: Transaction, name: str, settings: TypeSettings, by: str, reason: str) -> None:
    """Set a type's hold."""
    if settings.held is not None:
        tx.run(SQL["type"], name, _mark(tx, by, reason, held=settings.held))
    tx.catalog.changed(tx)


def _mark(tx: Transaction, by: str, reason: str, *, held: bool) -> str | None:
    return texts.mark_to_text(by, reason, tx.now) if held else None


def enter_queues(tx: Transaction, names: Sequence[str], tenant: str, most: int) -> bool:
    """Note who brings these, unless they would have brought too many."""
    new = [name for (name,) in tx.all(SQL["new"], json.dumps(list(names)))]
    if new and tx.number(SQL["brought"], tenant) + len(new) > most:
        return False
    for name in new:
        tx.run(SQL["bring"], name, tenant)
    return True


def remove_queue(tx: Transaction, name: str) -> ChangeAnswer:
    """Let an empty queue be listed no more."""
    row = tx.one(SQL["removed"], name)
    lanes = json.dumps([lane.id for lane in tx.catalog.lanes_of(name)])
    if tx.one(SQL["served"], tx.now - DEAD_MS, name) or tx.number(SQL["busy"], lanes):
        return ChangeAnswer.CONFLICT
    forgotten = tx.run(SQL["forget"], name)
    if row is not None and not row[0]:
        tx.run(SQL["remove"], name)
        tx.catalog.changed(tx)
        return ChangeAnswer.DONE
    if forgotten:
        return ChangeAnswer.DONE
    return ChangeAnswer.UNKNOWN if row is None else ChangeAnswer.ALREADY
