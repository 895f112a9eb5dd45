"""hold: keep jobs from being handed out."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.changes import ALREADY, DONE, change
from lamplighter.port.values import Changed


async def hold(call: Call, ids: Sequence[str], by: str, reason: str) -> list[Changed]:
    """Hold each; the first mark stays."""
    return await change(call, "hold", ids, records.mark_to_text(by, reason), again={DONE: ALREADY})
