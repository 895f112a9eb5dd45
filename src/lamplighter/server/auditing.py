"""What callers change is noted in the store as soon as it is done, before they are answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lamplighter import runtime
from lamplighter.model.names import shown
from lamplighter.port.access import About, AuditEntry, entries_of
from lamplighter.server.route import Request

if TYPE_CHECKING:
    from lamplighter.server.service import HttpService


log = logging.getLogger("lamplighter.server")


async def note(request: Request[Any, Any], *changed: About, reason: str | None = None) -> None:
    """Note what was changed, by whom and why: as the query says, if no other reason is given.

    If that fails, the log of the service has it, and the caller is answered all the same: the
    change is made, and to ask for it again could make it twice.
    """
    if reason is None:
        reason = str(getattr(request.query, "reason", ""))
    by = request.principal.name
    entries = entries_of(changed, by=by, action=request.action, reason=reason)
    # A request that is given up must not take the note with it.
    await asyncio.shield(runtime.spawn(_write(request.service, entries), name="audit"))


async def _write(service: HttpService, entries: Sequence[AuditEntry]) -> None:
    try:
        engine = await service.client.engine()
        size = engine.capabilities.max_batch
        for start in range(0, len(entries), size):
            part = entries[start : start + size]
            await service.client.repeatable(lambda part=part: engine.access.note_audit(part))
    except Exception:
        told = [f"{each.action} {shown(each.object)}: {each.answer}" for each in entries]
        log.exception("not in the audit log: %s by %s", ", ".join(told), shown(entries[0].by))
