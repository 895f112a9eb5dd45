"""Tokens and the audit log, as a part of the engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.verbs import audit, tokens
from lamplighter.engines.sqlite.verbs.prune_access import prune_access
from lamplighter.model.names import check_words
from lamplighter.port.guards import bounded, check_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.reader import Reader
    from lamplighter.engines.sqlite.writer import Writer
    from lamplighter.port.access import AuditEntry, AuditPage, NewToken, TokenPage, TokenRecord
    from lamplighter.port.values import ChangeAnswer


class SqliteAccess:
    """Who may call a service, and what they have changed."""

    def __init__(self, writer: Writer, reader: Reader, max_batch: int) -> None:
        self._writer = writer
        self._reader = reader
        self._max_batch = max_batch

    async def put_token(self, token: NewToken, *, by: str) -> ChangeAnswer:
        check_words("operator's name", by)
        return await self._writer.run(partial(tokens.put_token, new=token, by=by))

    async def revoke_token(self, prefix: str, *, by: str, reason: str) -> ChangeAnswer:
        check_note(by, reason)
        work = partial(tokens.revoke_token, prefix=prefix, by=by, reason=reason)
        return await self._writer.run(work)

    async def note_audit(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            taken = bounded(entries, self._max_batch)
            await self._writer.run(partial(audit.note_audit, entries=taken))

    async def prune_access(self, keep_ms: int, limit: int) -> int:
        work = partial(prune_access, keep_ms=keep_ms, limit=limit)
        return await self._writer.run(work, durable=False)

    async def token(self, prefix: str) -> TokenRecord | None:
        return await self._reader.run(partial(tokens.token, prefix=prefix))

    async def tokens(self, *, limit: int, cursor: str | None = None) -> TokenPage:
        return await self._reader.run(partial(tokens.tokens, limit=limit, cursor=cursor))

    async def audit(
        self, *, tenant: str | None = None, limit: int, cursor: str | None = None
    ) -> AuditPage:
        work = partial(audit.audit, tenant=tenant, limit=limit, cursor=cursor)
        return await self._reader.run(work)
