"""claim_later: wait for jobs; where one shard has them all, the claim itself waits at the server.

It has a nonce of its own, and is known to be made, withdrawn or lost before anything is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from lamplighter.engines.redis.ahead import MOST, OLDEST, Ahead
from lamplighter.engines.redis.verbs.claim import REPEATED, answer_of, arguments, repeated
from lamplighter.engines.redis.verbs.settle import settle
from lamplighter.engines.redis.wakeup import RedisWakeup
from lamplighter.model.errors import StoreError
from lamplighter.model.lifecycle import settle_all
from lamplighter.model.outcome import Released
from lamplighter.port.patience import ASK_AGAIN, Patience, topics_of
from lamplighter.port.values import Claimed, ClaimRequest

_WITHDRAW_SECONDS = 2.0
"""So long somebody in a hurry waits until it is known what the claim has taken."""


async def claim_later(hearer: RedisWakeup, request: ClaimRequest, patience: Patience) -> Claimed:
    """Wait for news, and take what the claim at the server was given with them."""
    seconds = patience.left(request, hearer.rest_ms / 1000)
    ahead = _ahead(hearer, request, seconds)
    wait = hearer.wait(topics_of(request), seconds, types=request.types, ahead=ahead)
    try:
        await patience.during(wait)
        if ahead is None:
            return ASK_AGAIN
        if not patience.hurried:
            return await _taken(hearer, request, ahead)
        async with asyncio.timeout(_WITHDRAW_SECONDS):
            return await _withdrawn(hearer, request, ahead)
    except (TimeoutError, asyncio.CancelledError) as ended:
        if ahead is not None:
            hearer.spawn(_give_back(hearer, request, ahead))
        if isinstance(ended, TimeoutError):
            return ASK_AGAIN
        raise


def _ahead(hearer: RedisWakeup, request: ClaimRequest, seconds: float) -> Ahead | None:
    """Pack the claim, if it may wait at the server for so long."""
    if hearer.transport.shards > 1 or seconds > OLDEST * request.lease_ms / 1000:
        return None
    args = (*arguments(replace(request, limit=min(MOST, request.limit))), *hearer.topics(request))
    packed = hearer.transport.packed("claim", args)
    return None if packed is None else Ahead(request.nonce, packed, request.lease_ms)


async def _taken(hearer: RedisWakeup, request: ClaimRequest, ahead: Ahead) -> Claimed:
    """Find out what the claim took; one that still waits is made now."""
    said = await hearer.ear().answer(ahead)
    if said is None and ahead.is_sent:
        return await repeated(hearer.transport, request)
    if said is None or isinstance(said, Exception) or said[0] == REPEATED:
        return ASK_AGAIN
    return await answer_of(hearer.transport, request, said, hearer)


async def _withdrawn(hearer: RedisWakeup, request: ClaimRequest, ahead: Ahead) -> Claimed:
    """See to it that the claim takes nothing more, and find out what it took."""
    await hearer.ear().withdraw(request.nonce)
    return await _taken(hearer, request, ahead)


async def _give_back(hearer: RedisWakeup, request: ClaimRequest, ahead: Ahead) -> None:
    """Leave no claim behind, when nobody waits for what it takes any more."""
    # Without the store, jobs come back when their leases end.
    with contextlib.suppress(StoreError):
        answer = await _withdrawn(hearer, request, ahead)
        if answer.claims:
            await settle(hearer.transport, settle_all(answer.claims, Released()))
            for topic in topics_of(request):
                await hearer.notify(topic)
