"""Who may call a service, what somebody has changed, and what is good for a single use.

All of it lives in shard 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.port import rows, texts
from lamplighter.port.access import (
    AuditEntry,
    AuditPage,
    AuditRecord,
    NewToken,
    TokenPage,
    TokenRecord,
    kept,
)
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.values import ChangeAnswer

_STEP = 100
"""Tokens, entries and marks that one script reads or removes."""


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────


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
    """Return one token."""
    name = texts.clean(prefix)
    now, *parts = await call.run("inspect_tokens", (f"[{name}", 1))
    # Where there is none, the next one is told.
    return _token(prefix, parts[1:], now) if parts and parts[0] == name.encode() else None


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


# ── what somebody has changed ─────────────────────────────────────────────────────────────────────


async def note_audit(call: Call, entries: Sequence[AuditEntry]) -> None:
    """Add entries."""
    await call.run("note_audit", [part for entry in entries for part in _told(kept(entry))])


def _told(entry: AuditEntry) -> tuple[Argument, ...]:
    told = {
        "by": entry.by,
        "action": entry.action,
        "object": entry.object,
        "answer": entry.answer,
        "reason": entry.reason,
    }
    owned, tenant = int(entry.tenant is not None), entry.tenant or ""
    return (entry.id, owned, tenant, json.dumps({**told, "tenant": entry.tenant}))


async def audit(call: Call, tenant: str | None, limit: int, cursor: str | None) -> AuditPage:
    """List entries, newest first."""
    (before,) = place_of(cursor, 1)
    found: list[AuditRecord] = []
    given = (int(tenant is not None), texts.clean(tenant or ""))
    while len(found) < limit:
        wanted = min(_STEP, limit - len(found))
        parts = await call.run("inspect_audit", (*given, before, wanted))
        each = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        found += [_audit_record(entry_id, text) for entry_id, _, text in each]
        if len(parts) < 3 * wanted:
            return AuditPage(found, None)
        before = int(parts[-2])
    return AuditPage(found, cursor_of((before,)))


def _audit_record(entry_id: bytes, text: bytes) -> AuditRecord:
    told = json.loads(text)
    entry = AuditEntry(
        id=entry_id.decode(),
        by=told["by"],
        action=told["action"],
        object=told["object"],
        answer=told["answer"],
        tenant=told["tenant"],
        reason=told["reason"],
    )
    return AuditRecord(told["at"], entry)


# ── single use, and what is too old ───────────────────────────────────────────────────────────────


async def spend(call: Call, what: str, holder: str, keep_ms: int) -> bool:
    """Note who used it, unless somebody has."""
    said = await call.run("spend", (texts.clean(what), texts.clean(holder), keep_ms))
    return said == 1


async def spent(call: Call, what: str) -> bool:
    """Return whether somebody has used it."""
    return await call.run("inspect_name", ("spent", texts.clean(what))) is not None


async def prune_access(call: Call, keep_ms: int, limit: int) -> int:
    """Remove what is older than that, a step at a time."""
    gone = [0, 0, 0]
    while min(gone) < limit:
        some = (min(_STEP, limit - count) for count in gone)
        said = await call.run("prune_access", (keep_ms, *some))
        gone = [count + more for count, more in zip(gone, said, strict=True)]
        if not any(said):
            break
    return sum(gone)
