"""purge: remove terminal jobs with all that is kept about them."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.changes import DONE, change
from lamplighter.port.values import ChangeAnswer, Changed


async def purge(call: Call, ids: Sequence[str], by: str, reason: str) -> list[Changed]:  # noqa: ARG001 - the operator's name is told by the event
    """Remove each; its idempotency key stays and answers `gone`."""
    return await change(call, "purge", ids, again={DONE: ChangeAnswer.UNKNOWN})
