"""prune_access: remove old audit entries, tokens that have long ended, and spent marks."""

from __future__ import annotations

from lamplighter.engines.redis.call import Call

_STEP = 100
"""Entries, tokens and marks that one script removes."""


async def prune_access(call: Call, keep_ms: int, limit: int) -> int:
    """Remove what is older than that, a step at a time."""
    gone = [0, 0, 0]
    while min(gone) < limit:
        some = (min(_STEP, limit - count) for count in gone)
        said = await call.run("prune_access", (keep_ms, *some))
        gone = [count + more for count, more in zip(gone, said, strict=True)]
        if not any(said):
            break
    return sum(gone)
