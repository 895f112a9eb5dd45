"""rescue: read the claims whose lease has ended, and those of one worker."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.model.job import Claim
from lamplighter.port.values import Expired

_MORE = b"more"
_PAGE = 500
_overdue = attrgetter("overdue_ms")


async def rescue(call: Call, limit: int) -> list[Expired]:
    """Read expired claims, longest overdue first; leases that the clock stretched are cut."""
    found: list[Expired] = []
    for shard in range(call.shards):
        found += await _expired(call, shard, min(limit, _PAGE))
    found.sort(key=_overdue, reverse=True)
    return found[:limit]


async def _expired(call: Call, shard: int, limit: int) -> list[Expired]:
    while True:
        said = await call.run("rescue", (limit,), shard=shard)
        if said[0] != _MORE:
            break
    return [
        Expired(records.claim_of(job_id.decode(), value, records.lane_of(lane), run), overdue)
        for overdue, job_id, value, lane, run in zip(
            said[1::5], said[2::5], said[3::5], said[4::5], said[5::5], strict=True
        )
    ]


def read_claims(said: Sequence[Any]) -> list[Claim]:
    """Read claims: of each its id, value, lane, and what stands beside the job while it runs."""
    lane_of, claim_of = records.lane_of, records.claim_of
    return [
        claim_of(job_id.decode(), value, lane_of(lane), run)
        for job_id, value, lane, run in zip(
            said[::4], said[1::4], said[2::4], said[3::4], strict=True
        )
    ]


async def claims_of(call: Call, worker: str) -> list[Claim]:
    """Read what a worker holds."""
    return await running(call, "worker", worker)


async def running(call: Call, whose: str, name: str) -> list[Claim]:
    """Read the claims of a `worker` or under a `nonce`, by looking at all that runs, in pages."""
    found: dict[str, Claim] = {}
    for shard in range(call.shards):
        cursor = b"0"
        while True:
            cursor, *said = await call.run("running", (whose, name, cursor), shard=shard)
            found |= {one.job.id: one for one in read_claims(said)}
            if cursor == b"0":
                break
    return sorted(found.values(), key=attrgetter("handout"))
