"""note_audit and its reads: what somebody has changed. All of it lives in shard 0."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.port import texts
from lamplighter.port.access import AuditEntry, AuditPage, AuditRecord, kept
from lamplighter.port.cursors import cursor_of, place_of

_STEP = 100
"""Entries that one script reads."""


async def note_audit(call: Call, entries: Sequence[AuditEntry]) -> None:
    """Add entries."""
    await call.run("note_audit", [part for entry in entries for part in _arguments(kept(entry))])


def _arguments(entry: AuditEntry) -> tuple[Argument, ...]:
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
        found += [_record(entry_id, text) for entry_id, _, text in each]
        if len(parts) < 3 * wanted:
            return AuditPage(found, None)
        before = int(parts[-2])
    return AuditPage(found, cursor_of((before,)))


def _record(entry_id: bytes, text: bytes) -> AuditRecord:
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
