"""note_audit and its reads: what somebody has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port.access import AuditPage, kept
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.rows import audit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.port.access import AuditEntry

SQL = load("audit")


def note_audit(tx: Transaction, entries: Sequence[AuditEntry]) -> None:
    """Add entries."""
    tx.many(SQL["note"], [_row(kept(entry), tx.now) for entry in entries])


def _row(entry: AuditEntry, now: int) -> Row:
    return (
        entry.id,
        now,
        entry.by,
        entry.action,
        entry.object,
        entry.answer,
        entry.tenant,
        entry.reason,
    )


def audit(tx: Transaction, tenant: str | None, limit: int, cursor: str | None) -> AuditPage:
    """List entries, newest first."""
    (before,) = place_of(cursor, 1)
    if tenant is None:
        rows = tx.all(SQL["all"], before, limit)
    else:
        rows = tx.all(SQL["of_tenant"], tenant, before, limit)
    following = cursor_of((rows[-1][0],)) if len(rows) == limit else None
    return AuditPage(list(map(audit_of, rows)), following)
