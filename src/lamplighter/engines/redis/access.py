"""Tokens and the audit log, as a part of the engine."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs import audit, tokens
from lamplighter.engines.redis.verbs.prune_access import prune_access
from lamplighter.model.names import check_words
from lamplighter.port.access import AuditEntry, AuditPage, NewToken, TokenPage, TokenRecord
from lamplighter.port.guards import bounded, check_note
from lamplighter.port.values import ChangeAnswer


class RedisAccess:
    """Who may call a service, and what they have changed."""

    def __init__(self, call: Call, max_batch: int) -> None:
        self._call = call
        self._max_batch = max_batch

    async def put_token(self, token: NewToken, *, by: str) -> ChangeAnswer:
        check_words("operator's name", by)
        return await tokens.put_token(self._call, token, by)

    async def revoke_token(self, prefix: str, *, by: str, reason: str) -> ChangeAnswer:
        check_note(by, reason)
        return await tokens.revoke_token(self._call, prefix, by, reason)

    async def note_audit(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await audit.note_audit(self._call, bounded(entries, self._max_batch))

    async def prune_access(self, keep_ms: int, limit: int) -> int:
        return await prune_access(self._call, keep_ms, limit)

    async def token(self, prefix: str) -> TokenRecord | None:
        return await tokens.token(self._call, prefix)

    async def tokens(self, *, limit: int, cursor: str | None = None) -> TokenPage:
        return await tokens.tokens(self._call, limit, cursor)

    async def audit(
        self, *, tenant: str | None = None, limit: int, cursor: str | None = None
    ) -> AuditPage:
        return await audit.audit(self._call, tenant, limit, cursor)
