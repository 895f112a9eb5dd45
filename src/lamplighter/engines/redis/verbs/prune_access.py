"""prune_access: remove old audit entries, and tokens that have long ended."""

from __future__ import annotations

from lamplighter.engines.redis.call import Call

_STEP = 100
"""Entries, and tokens, that one script removes."""


async def prune_access(call: Call, keep_ms: int, limit: int) -> int:
    """Remove what is older than that, a step at a time."""
    entries = tokens = 0
    while entries < limit or tokens < limit:
        some = min(_STEP, limit - entries), min(_STEP, limit - tokens)
        said = await call.run("prune_access", (keep_ms, *some))
        entries, tokens = entries + said[0], tokens + said[1]
        if not any(said):
            break
    return entries + tokens
