"""spend and its read: what is good for a single use."""

from __future__ import annotations

from lamplighter.engines.postgres.call import Call
from lamplighter.port.texts import clean


async def spend(call: Call, what: str, holder: str, keep_ms: int) -> bool:
    """Note who used it, unless somebody has."""
    ((answer,),) = await call.rows(
        f"SELECT {call.function('spend')}(%s, %s, %s::bigint)",
        (clean(what), clean(holder), keep_ms),
    )
    return answer


async def spent(call: Call, what: str) -> bool:
    """Return whether somebody has used it."""
    ((answer,),) = await call.rows(f"SELECT {call.function('is_spent')}(%s)", (clean(what),))
    return answer
