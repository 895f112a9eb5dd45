"""What callers change is noted in the store before they are answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lamplighter import runtime
from lamplighter.port.access import About, entries_of
from lamplighter.server.auth import Principal

if TYPE_CHECKING:
    from lamplighter.server.service import HttpService


log = logging.getLogger("lamplighter.server")


async def note(
    service: HttpService,
    principal: Principal,
    action: str,
    changed: Sequence[About],
    query: msgspec.Struct,
) -> None:
    """Note what was changed, by whom and why.

    If it cannot be noted, the caller is told so by the error of the store, although the change is
    made: asked again, the verb finds it done, and it is noted then.
    """
    reason = str(getattr(query, "reason", ""))
    entries = entries_of(changed, by=principal.name, action=action, reason=reason)
    engine = await service.client.engine()
    size = engine.capabilities.max_batch
    for start in range(0, len(entries), size):
        part = entries[start : start + size]
        writing = service.client.repeatable(lambda part=part: engine.access.note_audit(part))
        # A request that is given up must not take the note with it.
        await asyncio.shield(runtime.spawn(writing, name="audit", on_crash=_tell))


def _tell(error: BaseException) -> None:
    log.warning("a change could not be noted in the audit log: %s", error)
