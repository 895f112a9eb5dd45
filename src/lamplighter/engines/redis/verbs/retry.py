"""retry: run waiting jobs now, and dead ones again."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.changes import ALREADY, DONE, change
from lamplighter.port.values import Changed


async def retry(call: Call, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Make each due now."""
    return await change(call, "retry", ids, again={DONE: ALREADY})
