"""put_token, revoke_token and their reads: who may call a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.port import texts
from lamplighter.port.access import TokenPage
from lamplighter.port.rows import token_of
from lamplighter.port.values import ChangeAnswer

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.access import NewToken, TokenRecord

SQL = load("tokens")


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
    """Give one token."""
    row = tx.one(SQL["token"], prefix)
    return None if row is None else token_of(row, tx.now)


def tokens(tx: Transaction, limit: int, cursor: str | None) -> TokenPage:
    """List tokens by their prefixes."""
    rows = tx.all(SQL["tokens"], cursor or "", limit)
    following = rows[-1][0] if len(rows) == limit else None
    return TokenPage([token_of(row, tx.now) for row in rows], following)
