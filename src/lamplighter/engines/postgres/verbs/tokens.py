"""put_token, revoke_token and their reads: who may call a service."""

from __future__ import annotations

from lamplighter.engines.postgres import records
from lamplighter.engines.postgres.call import Call
from lamplighter.port.access import NewToken, TokenPage, TokenRecord
from lamplighter.port.rows import token_of
from lamplighter.port.texts import clean
from lamplighter.port.values import ChangeAnswer

_PUT = "%s, %s, %s, %s, %s, %s::bigint, %s"
_NOW = 9
"""Place of the store's now, behind the columns of a token."""


async def put_token(call: Call, new: NewToken, by: str) -> ChangeAnswer:
    """Store a token, unless its prefix is taken."""
    scopes = " ".join(new.scopes)
    ((answer,),) = await call.rows(
        f"SELECT {call.function('put_token')}({_PUT})",
        (new.prefix, new.digest, new.name, scopes, new.tenant, new.lifetime_ms, by),
    )
    return ChangeAnswer(answer)


async def revoke_token(call: Call, prefix: str, by: str, reason: str) -> ChangeAnswer:
    """Mark a token as revoked."""
    ((answer,),) = await call.rows(
        f"SELECT {call.function('revoke_token')}(%s, %s)",
        (clean(prefix), records.mark_to_text(by, reason)),
    )
    return ChangeAnswer(answer)


async def token(call: Call, prefix: str) -> TokenRecord | None:
    """Return one token."""
    if clean(prefix) != prefix:
        return None
    rows = await call.rows(f"SELECT * FROM {call.function('read_token')}(%s)", (prefix,))
    return token_of(rows[0], rows[0][_NOW]) if rows else None


async def tokens(call: Call, limit: int, cursor: str | None) -> TokenPage:
    """List tokens by their prefixes."""
    rows = await call.rows(
        f"SELECT * FROM {call.function('find_tokens')}(%s, %s::integer)",
        (clean(cursor or ""), limit),
    )
    following = rows[-1][0] if rows and len(rows) == limit else None
    return TokenPage([token_of(row, row[_NOW]) for row in rows], following)
