"""unhold: put jobs back into their turns."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.changes import ALREADY, DONE, change
from lamplighter.port.values import Changed


async def unhold(call: Call, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Unhold each, due when it was due."""
    return await change(call, "unhold", ids, again={DONE: ALREADY})
