"""What callers change is noted in the store before they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from lamplighter.port.access import About, entries_of
from lamplighter.server.auth import Principal

if TYPE_CHECKING:
    from lamplighter.server.service import HttpService


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
        await service.client.repeatable(lambda part=part: engine.access.note_audit(part))
