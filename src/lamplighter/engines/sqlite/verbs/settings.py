"""put_queue, put_tenant, put_type: what operators set. Each costs nothing in the backlog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model import stride
from lamplighter.port import texts

if TYPE_CHECKING:
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
