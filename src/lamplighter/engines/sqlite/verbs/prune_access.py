"""prune_access: remove old audit entries, and tokens that have long ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("prune_access")


def prune_access(tx: Transaction, keep_ms: int, limit: int) -> int:
    """Remove what is older than that."""
    before = tx.now - keep_ms
    return tx.run(SQL["audit"], before, limit) + tx.run(SQL["tokens"], before, limit)
