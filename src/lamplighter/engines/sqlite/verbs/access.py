"""Tokens, audit and single uses: who may call a service, and what was changed through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port import texts
from lamplighter.port.access import AuditPage, TokenPage, kept
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.rows import audit_of, token_of
from lamplighter.port.values import ChangeAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.port.access import AuditEntry, NewToken, TokenRecord

SQL = load("access")


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


def put_token(tx: Transaction, new: NewToken, by: str) -> ChangeAnswer:
    """Store a token, unless its prefix is taken."""
    expires = None if new.lifetime_ms is None else tx.now + new.lifetime_ms
    values = (new.prefix, new.digest, new.name, " ".join(new.scopes), new.tenant)
    if tx.run(SQL["put"], *values, tx.now, by, expires):
        return ChangeAnswer.DONE
    known = token(tx, new.prefix)
    same = known is not None and known.digest == new.digest
    return ChangeAnswer.ALREADY if same else ChangeAnswer.CONFLICT


def revoke_token(tx: Transaction, prefix: str, by: str, reason: str) -> ChangeAnswer:
    """Mark a token as revoked."""
    if tx.run(SQL["revoke"], texts.mark_to_text(by, reason, tx.now), tx.now, prefix):
        return ChangeAnswer.DONE
    return ChangeAnswer.UNKNOWN if token(tx, prefix) is None else ChangeAnswer.ALREADY


def token(tx: Transaction, prefix: str) -> TokenRecord | None:
    """Return one token."""
    row = tx.one(SQL["token"], prefix)
    return None if row is None else token_of(row, tx.now)


def tokens(tx: Transaction, limit: int, cursor: str | None) -> TokenPage:
    """List tokens by their prefixes."""
    rows = tx.all(SQL["tokens"], cursor or "", limit)
    following = rows[-1][0] if len(rows) == limit else None
    return TokenPage([token_of(row, tx.now) for row in rows], following)


# ── audit ────────────────────────────────────────────────────────────────────────────────────


def note_audit(tx: Transaction, entries: Sequence[AuditEntry]) -> None:
    """Add entries."""
    tx.many(SQL["note"], [_row(kept(entry), tx.now) for entry in entries])


def _row(entry: AuditEntry, now: int) -> Row:
    return (
        entry.id, now, entry.by, entry.action, entry.object, entry.answer, entry.tenant,
        entry.reason,
    )  # fmt: skip


def audit(tx: Transaction, tenant: str | None, limit: int, cursor: str | None) -> AuditPage:
    """List entries, newest first."""
    (before,) = place_of(cursor, 1)
    if tenant is None:
        rows = tx.all(SQL["all"], before, limit)
    else:
        rows = tx.all(SQL["of_tenant"], tenant, before, limit)
    following = cursor_of((rows[-1][0],)) if len(rows) == limit else None
    return AuditPage(list(map(audit_of, rows)), following)


# ── single uses ──────────────────────────────────────────────────────────────────────────────


def spend(tx: Transaction, what: str, holder: str, keep_ms: int) -> bool:
    """Note who used it, unless somebody has."""
    if tx.run(SQL["spend"], what, holder, tx.now + keep_ms):
        return True
    row = tx.one(SQL["holder"], what)
    return row is not None and row[0] == holder


def spent(tx: Transaction, what: str) -> bool:
    """Return whether somebody has used it."""
    return tx.one(SQL["holder"], what) is not None


def prune_access(tx: Transaction, keep_ms: int, limit: int) -> int:
    """Remove old audit entries, tokens that have long ended, and spent marks."""
    before = tx.now - keep_ms
    gone = tx.run(SQL["prune_audit"], before, limit) + tx.run(SQL["prune_tokens"], before, limit)
    return gone + tx.run(SQL["prune_spent"], tx.now, limit)
