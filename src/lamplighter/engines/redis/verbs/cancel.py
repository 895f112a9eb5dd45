"""cancel: end what waits, ask what runs."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs.changes import ALREADY, DONE, change
from lamplighter.port import texts
from lamplighter.port.values import ChangeAnswer, Changed


async def cancel(call: Call, ids: Sequence[str], by: str, reason: str) -> list[Changed]:
    """Cancel each; a running job is only asked, and settle decides."""
    return await change(
        call,
        "cancel",
        ids,
        records.mark_to_text(by, reason),
        texts.clean(reason) or "cancelled",
        again={DONE: ALREADY, ChangeAnswer.REQUESTED: ALREADY},
    )
