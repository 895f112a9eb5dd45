"""note_audit and its reads: what somebody has changed."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays
from lamplighter.engines.postgres.call import Call
from lamplighter.port.access import AuditEntry, AuditPage, kept
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.rows import audit_of
from lamplighter.port.texts import clean

_PARAMETERS = ", ".join(["%s"] * 8)


async def note_audit(call: Call, entries: Sequence[AuditEntry]) -> None:
    """Add entries."""
    given = [kept(entry) for entry in entries]
    await call.rows(
        f"SELECT {call.function('note_audit')}({_PARAMETERS})",
        (
            arrays.texts([one.id for one in given]),
            arrays.texts([one.by for one in given]),
            arrays.texts([one.action for one in given]),
            arrays.texts([one.object for one in given]),
            arrays.texts([one.answer for one in given]),
            arrays.texts([one.tenant or "" for one in given]),
            arrays.flags([one.tenant is not None for one in given]),
            arrays.texts([one.reason for one in given]),
        ),
    )


async def audit(call: Call, tenant: str | None, limit: int, cursor: str | None) -> AuditPage:
    """List entries, newest first."""
    (before,) = place_of(cursor, 1)
    rows = await call.rows(
        f"SELECT * FROM {call.function('find_audit')}(%s, %s::bigint, %s::integer)",
        (None if tenant is None else clean(tenant), before, limit),
    )
    following = cursor_of((rows[-1][0],)) if rows and len(rows) == limit else None
    return AuditPage(list(map(audit_of, rows)), following)
