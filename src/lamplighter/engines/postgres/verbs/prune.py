"""prune: remove what is past its retention, a bounded step at a time."""

from __future__ import annotations

from lamplighter.engines.postgres.call import Call
from lamplighter.port.values import RETENTION_FLOOR_MS, Pruned, Retention

_PARAMETERS = "%s::bigint, %s::bigint, %s::bigint, %s::bigint, %s::bigint, %s::integer"


async def prune(call: Call, retention: Retention, limit: int) -> Pruned:
    """Remove by age, by count, then what else has aged out."""
    ((jobs, keys, others, more),) = await call.rows(
        f"SELECT jobs, keys, others, more FROM {call.function('prune')}({_PARAMETERS})",
        (
            retention.finished_ms,
            retention.finished_count,
            retention.dead_ms,
            retention.key_ms,
            RETENTION_FLOOR_MS,
            limit,
        ),
    )
    return Pruned(jobs=jobs, keys=keys, others=others, more=more)
