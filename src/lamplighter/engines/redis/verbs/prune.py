"""prune: remove what is past its retention, a bounded step at a time."""

from __future__ import annotations

from collections import Counter

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.port.values import RETENTION_FLOOR_MS, Pruned, Retention


async def prune(call: Call, retention: Retention, limit: int) -> Pruned:
    """Remove by age, by count, then what else has aged out, shard by shard."""
    surplus = await _surplus(call, retention, limit)
    jobs = keys = others = 0
    more = False
    for shard in range(call.shards):
        # What one shard removes the next may not: the limit is that of the whole step.
        room = limit - jobs
        if room == 0:
            return Pruned(jobs=jobs, keys=keys, others=others, more=True)
        count: Argument = retention.finished_count if surplus is None else ""
        said = await call.run(
            "prune",
            (
                retention.finished_ms,
                count,
                0 if surplus is None else surplus[shard],
                retention.dead_ms,
                retention.key_ms,
                RETENTION_FLOOR_MS,
                room,
            ),
            shard=shard,
        )
        jobs, keys, others = jobs + said[0], keys + said[1], others + said[2]
        more = more or said[3] == 1
    return Pruned(jobs=jobs, keys=keys, others=others, more=more)


async def _surplus(call: Call, retention: Retention, limit: int) -> Counter[int] | None:
    """Say how many of the oldest finished jobs each shard has to give up, so that all together
    keep no more than the number; None for a single shard, which counts itself.
    """
    if call.shards == 1:
        return None
    total = 0
    oldest: list[tuple[int, int]] = []
    for shard in range(call.shards):
        count, *ends = await call.run("prune_ages", (limit,), shard=shard)
        total += count
        oldest += [(finished, shard) for finished in ends]
    many = max(0, min(limit, total - retention.finished_count))
    return Counter(shard for _, shard in sorted(oldest)[:many])
