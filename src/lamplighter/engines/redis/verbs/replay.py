"""replay: terminal jobs again."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.changes import DONE, change
from lamplighter.port.values import ChangeAnswer, Changed


async def replay(call: Call, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Run each again."""
    return await change(call, "replay", ids, again={DONE: ChangeAnswer.CONFLICT})
