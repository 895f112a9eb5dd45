"""enter_queues, remove_queue: which queues there are, and who has brought them.

Who has brought a queue is noted in shard 0; that it was removed stands with its settings, in all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.verbs import backlog, membership
from lamplighter.port import texts
from lamplighter.port.values import ChangeAnswer


async def enter_queues(call: Call, names: Sequence[str], tenant: str, most: int) -> bool:
    """Note who brings these, unless they would have brought too many."""
    return await call.run("enter_queues", (tenant, most, *names)) == 1


async def remove_queue(call: Call, name: str) -> ChangeAnswer:
    """Let an empty queue be listed no more."""
    if texts.clean(name) != name:
        return ChangeAnswer.UNKNOWN
    there, info = await backlog.one_queue(call, name)
    if info.busy or await _is_served(call, name) or await _has_held(call, name):
        return ChangeAnswer.CONFLICT
    answers: set[str] = set()
    for shard in reversed(range(call.shards)):
        said = await call.run("remove_queue", (name, int(there)), shard=shard)
        answers.add(said.decode())
        if said == b"conflict":
            break
    ranked = (ChangeAnswer.CONFLICT, ChangeAnswer.DONE, ChangeAnswer.ALREADY, ChangeAnswer.UNKNOWN)
    return next(answer for answer in ranked if answer.value in answers)


async def held(call: Call, tenant: str, most: int) -> int:
    """Count the waiting jobs of a tenant that are held."""
    found: set[str] = set()
    for shard in range(call.shards):
        async for job, whose, _ in _held(call, shard):
            if whose == tenant:
                found.add(job)
            if len(found) >= most:
                return most
    return len(found)


async def _is_served(call: Call, name: str) -> bool:
    workers = await membership.workers(call)
    return any(worker.lives and name in worker.queues for worker in workers)


async def _has_held(call: Call, name: str) -> bool:
    for shard in range(call.shards):
        lanes: set[int] | None = None
        async for _, _, lane in _held(call, shard):
            if lanes is None:
                lanes = await backlog.lanes_of(call, shard, name)
            if lane in lanes:
                return True
    return False


async def _held(call: Call, shard: int) -> AsyncIterator[tuple[str, str, int]]:
    """Yield id, tenant and lane of each job that is held."""
    cursor = b"0"
    while True:
        cursor, *rest = await call.run("inspect_held", (cursor,), shard=shard)
        for job, tenant, lane in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
            yield job.decode(), tenant.decode(), int(lane)
        if cursor == b"0":
            return
