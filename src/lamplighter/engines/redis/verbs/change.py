"""change: do what an operator asks to jobs, each as the table of the action says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.shards import split
from lamplighter.model.changes import TABLES, Action
from lamplighter.port import texts

_AT_ONCE = 100
"""Jobs in one script: nobody else is served meanwhile, and operators are in no hurry."""


async def change(
    call: Call, ids: Sequence[str], action: Action, by: str, reason: str
) -> Mapping[str, int]:
    """Change each job, and return the numbers of the situations in which they were found."""
    about = (
        TABLES[action].effects,
        records.mark_to_text(by, reason),
        texts.clean(reason) or "cancelled",
    )
    found: dict[str, int] = {}
    for shard, (_, mine) in split(ids, call.shards, str).items():
        for start in range(0, len(mine), _AT_ONCE):
            some = mine[start : start + _AT_ONCE]
            numbers = await call.run("change", (*about, *some), shard=shard)
            found.update(
                (job_id, number)
                for job_id, number in zip(some, numbers, strict=True)
                if number >= 0
            )
    return found
