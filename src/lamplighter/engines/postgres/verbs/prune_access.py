"""prune_access: remove old audit entries, tokens that have long ended, and spent marks."""

from __future__ import annotations

from lamplighter.engines.postgres.call import Call


async def prune_access(call: Call, keep_ms: int, limit: int) -> int:
    """Remove what is older than that."""
    ((gone,),) = await call.rows(
        f"SELECT {call.function('prune_access')}(%s::bigint, %s::integer)", (keep_ms, limit)
    )
    return gone
