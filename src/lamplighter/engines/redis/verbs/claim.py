"""claim: hand out due jobs, fairly."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.verbs.rescue import read_claims, running
from lamplighter.model.job import Claim
from lamplighter.port.values import Claimed, ClaimRequest

_REPEATED = b"repeated"


async def claim(call: Call, request: ClaimRequest) -> Claimed:
    """Ask for jobs; of several shards, those first that have what was asked for first."""
    if call.shards > 1:
        return await _claim_from_several(call, request)
    said = await call.run("claim", _arguments(request, request.limit))
    if said[0] == _REPEATED:
        return await _repeated(call, request)
    return Claimed(read_claims(said[2:]), _poll(said))


async def _claim_from_several(call: Call, request: ClaimRequest) -> Claimed:
    """Look at all shards first: one may have answered this very request before.

    Then take from those that have something due, one after the other. Each is fair for itself.
    """
    first = zlib.crc32(request.nonce.encode()) % call.shards
    looks = await asyncio.gather(
        *(call.run("claim", _arguments(request, 0), shard=n) for n in range(call.shards))
    )
    if any(said[0] == _REPEATED for said in looks):
        return await _repeated(call, request)
    polls = {shard: _poll(said) for shard, said in enumerate(looks)}
    claims: list[Claim] = []
    left = request
    for shard in sorted(polls, key=lambda shard: (shard - first) % call.shards):
        if polls[shard] != 0 or left.limit <= 0 or (claims and left.max_bytes <= 0):
            continue
        said = await call.run("claim", _arguments(left, left.limit), shard=shard)
        if said[0] == _REPEATED:
            # Somebody repeats this request while it is being answered.
            return await _repeated(call, request)
        polls[shard] = _poll(said)
        taken = read_claims(said[2:])
        claims += taken
        left = _left(left, taken)
    known = [poll for poll in polls.values() if poll is not None]
    return Claimed(_in_order(claims, request), min(known) if known else None)


def _left(request: ClaimRequest, taken: Sequence[Claim]) -> ClaimRequest:
    """Give what a request still has room for."""
    counts = Counter(one.job.queue for one in taken)
    return replace(
        request,
        queues=tuple((queue, max(0, quota - counts[queue])) for queue, quota in request.queues),
        limit=request.limit - len(taken),
        max_bytes=request.max_bytes - sum(len(one.job.args) for one in taken),
    )


async def _repeated(call: Call, request: ClaimRequest) -> Claimed:
    """Give what still runs under a request that was answered before."""
    return Claimed(_in_order(await running(call, "nonce", request.nonce), request), 0)


def _in_order(claims: Sequence[Claim], request: ClaimRequest) -> list[Claim]:
    places = {queue: place for place, (queue, _) in enumerate(request.queues)}
    return sorted(
        claims, key=lambda one: (places.get(one.job.queue, len(places)), one.handout, one.job.id)
    )


def _poll(said: Sequence[Any]) -> int | None:
    return None if said[1] == b"" else said[1]


def _arguments(request: ClaimRequest, limit: int) -> list[Argument]:
    return [
        request.nonce,
        request.worker,
        limit,
        request.lease_ms,
        request.max_bytes,
        len(request.queues),
        len(request.types),
        len(request.requirements),
        *(part for queue in request.queues for part in queue),
        *request.types,
        *request.requirements,
    ]
