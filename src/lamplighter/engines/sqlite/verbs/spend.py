"""spend and its read: what is good for a single use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("spend")


def spend(tx: Transaction, what: str, holder: str, keep_ms: int) -> bool:
    """Note who used it, unless somebody has."""
    if tx.run(SQL["spend"], what, holder, tx.now + keep_ms):
        return True
    row = tx.one(SQL["holder"], what)
    return row is not None and row[0] == holder


def spent(tx: Transaction, what: str) -> bool:
    """Return whether somebody has used it."""
    return tx.one(SQL["holder"], what) is not None
