"""put_token, revoke_token and their reads: who may call a service. All of it lives in shard 0."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.port import rows, texts
from lamplighter.port.access import NewToken, TokenPage, TokenRecord
from lamplighter.port.values import ChangeAnswer

_STEP = 100
"""Tokens that one script reads."""


async def put_token(call: Call, new: NewToken, by: str) -> ChangeAnswer:
    """Store a token, unless its prefix is taken."""
    told = {
        "name": texts.clean(new.name),
        "scopes": " ".join(new.scopes),
        "tenant": new.tenant,
        "by": texts.clean(by),
    }
    lifetime: Argument = "" if new.lifetime_ms is None else new.lifetime_ms
    said = await call.run(
        "put_token", (texts.clean(new.prefix), new.digest, lifetime, json.dumps(told))
    )
    return ChangeAnswer(said.decode())


async def revoke_token(call: Call, prefix: str, by: str, reason: str) -> ChangeAnswer:
    """Mark a token as revoked."""
    mark = records.mark_to_text(by, reason)
    said = await call.run("revoke_token", (texts.clean(prefix), mark))
    return ChangeAnswer(said.decode())


async def token(call: Call, prefix: str) -> TokenRecord | None:
    """Give one token."""
    found = await call.run("inspect_token", (texts.clean(prefix),))
    return _token(prefix, found[1:], found[0]) if found[1] else None


async def tokens(call: Call, limit: int, cursor: str | None) -> TokenPage:
    """List tokens by their prefixes."""
    found: list[TokenRecord] = []
    place = "-" if cursor is None else f"({texts.clean(cursor)}"
    while len(found) < limit:
        wanted = min(_STEP, limit - len(found))
        now, *parts = await call.run("inspect_tokens", (place, wanted))
        each = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        found += [_token(prefix.decode(), told, now) for prefix, *told in each]
        if len(parts) < 3 * wanted:
            return TokenPage(found, None)
        place = f"({found[-1].prefix}"
    return TokenPage(found, found[-1].prefix if found else None)


def _token(prefix: str, told: Sequence[bytes], now: int) -> TokenRecord:
    """Read a token from its text and the mark of who revoked it."""
    value, mark = json.loads(told[0]), told[1]
    row = (
        prefix,
        value["digest"],
        value["name"],
        value["scopes"],
        value["tenant"],
        value["at"],
        value["by"],
        value.get("expires"),
        mark.decode() or None,
    )
    return rows.token_of(row, now)
