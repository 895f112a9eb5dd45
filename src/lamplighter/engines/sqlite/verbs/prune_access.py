"""prune_access: remove old audit entries, tokens that have long ended, and spent marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction

SQL = load("prune_access")


def prune_access(tx: Transaction, keep_ms: int, limit: int) -> int:
    """Remove what is older than that."""
    before = tx.now - keep_ms
    gone = tx.run(SQL["audit"], before, limit) + tx.run(SQL["tokens"], before, limit)
    return gone + tx.run(SQL["spent"], tx.now, limit)
