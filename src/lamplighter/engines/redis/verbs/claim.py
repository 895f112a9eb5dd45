"""claim: hand out due jobs, fairly."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count, repeat
from struct import Struct
from typing import Any
from weakref import WeakKeyDictionary

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.shards import shard_of, shard_of_text
from lamplighter.engines.redis.verbs.rescue import running
from lamplighter.engines.redis.wakeup import RedisWakeup
from lamplighter.model.errors import StoreError
from lamplighter.model.job import Claim, Fence
from lamplighter.port.values import Claimed, ClaimRequest

REPEATED = b"repeated"
_PLACE = Struct("<H")
_MOST_OPEN = 1_000
_open: WeakKeyDictionary[Call, dict[str, None]] = WeakKeyDictionary()
"""Of each store that is open here: nonces of claims that some shard has not answered, at least not
to us; the oldest first."""


async def claim(call: Call, request: ClaimRequest, hearer: RedisWakeup | None = None) -> Claimed:
    """Ask for jobs. One shard also tells the hearer what is not news any more."""
    if call.shards > 1:
        return await _claim_from_several(call, request, hearer)
    if hearer is None:
        return await answer_of(call, request, await call.run("claim", arguments(request)))
    await hearer.ear().withdraw(request.nonce)
    said = await call.run("claim", [*arguments(request), *hearer.topics(request)])
    return await answer_of(call, request, said, hearer)


async def answer_of(
    call: Call, request: ClaimRequest, said: Any, hearer: RedisWakeup | None = None
) -> Claimed:
    """Read what the script has said."""
    if said[0] == REPEATED:
        return await repeated(call, request)
    if hearer is not None and said[1] != 0:
        hearer.saw(hearer.topics(request), said[3], said[2])
    return Claimed(_read(said[4:], request), _poll(said))


async def _claim_from_several(
    call: Call, request: ClaimRequest, hearer: RedisWakeup | None
) -> Claimed:
    """Ask one shard after the other, from one on that the nonce decides, while there is room.

    A claim that handed out something is known to the shard that it asked first, so that its repeat
    ends there. One that failed before may be known to any: its repeat looks at all of them first.
    """
    unanswered = _open.setdefault(call, {})
    answer, certain = None, True
    if request.nonce not in unanswered or not await _is_known(call, request):
        unanswered[request.nonce] = None
        if len(unanswered) > _MOST_OPEN:
            del unanswered[next(iter(unanswered))]
        answer, certain = await _go_round(call, request, hearer)
    if answer is None:
        answer = await repeated(call, request)
        await _note(call, request)
    if certain:
        unanswered.pop(request.nonce, None)
    return answer


async def _go_round(
    call: Call, request: ClaimRequest, hearer: RedisWakeup | None
) -> tuple[Claimed | None, bool]:
    """Take from one shard after the other, and say whether it is certain what each gave.

    No answer if one of them knows the request.
    """
    claims: list[Claim] = []
    polls: list[int] = []
    rest = 0
    left = request
    first = _first(call, request)
    try:
        for step in range(call.shards):
            if claims and (left.limit <= 0 or left.max_bytes <= 0):
                polls.append(0)  # nobody has looked what is due in the others
                break
            shard = (first + step) % call.shards
            said = await call.run("claim", arguments(left), shard=shard)
            if said[0] == REPEATED:
                return None, True
            taken = _read(said[4:], request)
            rest = max(rest, said[2])
            claims += taken
            left = _left(left, taken)
            poll = _poll(said)
            if poll is not None:
                polls.append(poll)
        if claims and shard_of(claims[0].job.id, call.shards) != first:
            await _note(call, request)
    except StoreError:
        if not claims:
            raise
        # What we know of is to be run now. If there was more, it comes back when its leases end.
        return Claimed(claims, 0), False
    if hearer is not None:
        hearer.saw((), (), rest)
    return Claimed(claims, min(polls, default=None)), True


async def _is_known(call: Call, request: ClaimRequest) -> bool:
    """Look whether a shard has answered this request, without taking anything."""
    nothing = replace(request, limit=0)
    looks = await asyncio.gather(
        *(call.run("claim", arguments(nothing), shard=shard) for shard in range(call.shards))
    )
    return any(said[0] == REPEATED for said in looks)


async def _note(call: Call, request: ClaimRequest) -> None:
    """Let the shard that is asked first know a request that others have answered."""
    await call.run("note_claim", (request.nonce,), shard=_first(call, request))


def _first(call: Call, request: ClaimRequest) -> int:
    return shard_of_text(request.nonce, call.shards)


def _left(request: ClaimRequest, taken: Sequence[Claim]) -> ClaimRequest:
    """Return what a request still has room for."""
    if not taken:
        return request
    counts = Counter(one.job.queue for one in taken)
    return replace(
        request,
        queues=tuple((queue, max(0, quota - counts[queue])) for queue, quota in request.queues),
        limit=request.limit - len(taken),
        max_bytes=request.max_bytes - sum(len(one.job.args) for one in taken),
    )


async def repeated(call: Call, request: ClaimRequest) -> Claimed:
    """Return what still runs under a request that was answered before, in the same order."""
    first = _first(call, request)
    places = {queue: place for place, (queue, _) in enumerate(request.queues)}

    def place(one: Claim) -> tuple[int, int, int]:
        step = (shard_of(one.job.id, call.shards) - first) % call.shards
        return step, places.get(one.job.queue, len(places)), one.handout

    held = await running(call, "nonce", request.nonce)
    return Claimed([replace(one, started=False) for one in sorted(held, key=place)], 0)


def _read(said: Sequence[Any], request: ClaimRequest) -> list[Claim]:
    """Read what was handed out: of each queue its hand-outs before, lanes, and the jobs."""
    claims: list[Claim] = []
    job_of, last_lease = records.job_of, records.last_lease
    for first, lanes, places, jobs in zip(
        said[::4], said[1::4], said[2::4], said[3::4], strict=True
    ):
        names = list(map(records.lane_of, lanes))
        numbers: list[int] = [number - 1 for (number,) in _PLACE.iter_unpack(places)]
        of_jobs: Iterable[records.Lane] = [names[n] for n in numbers] or repeat(names[0])
        claims += [
            Claim(
                job=job_of(job_id.decode(), value, lane),
                fence=Fence(last_lease(value) + 1, request.nonce),
                worker=request.worker,
                handout=handout,
            )
            for job_id, value, lane, handout in zip(
                jobs[::2], jobs[1::2], of_jobs, count(first + 1), strict=False
            )
        ]
    return claims


def _poll(said: Sequence[Any]) -> int | None:
    return None if said[1] == b"" else said[1]


def arguments(request: ClaimRequest) -> list[Argument]:
    """Arguments of the script, up to the topics."""
    return [
        request.nonce,
        request.worker,
        request.limit,
        request.lease_ms,
        request.max_bytes,
        len(request.queues),
        len(request.types),
        len(request.requirements),
        *(part for queue in request.queues for part in queue),
        *request.types,
        *request.requirements,
    ]
