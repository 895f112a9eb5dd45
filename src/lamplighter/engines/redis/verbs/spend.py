"""spend and its read: what is good for a single use. All of it lives in shard 0."""

from __future__ import annotations

from lamplighter.engines.redis.call import Call
from lamplighter.port import texts


async def spend(call: Call, what: str, holder: str, keep_ms: int) -> bool:
    """Note who used it, unless somebody has."""
    said = await call.run("spend", (texts.clean(what), texts.clean(holder), keep_ms))
    return said == 1


async def spent(call: Call, what: str) -> bool:
    """Return whether somebody has used it."""
    return await call.run("inspect_spent", (texts.clean(what),)) == 1
