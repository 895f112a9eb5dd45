"""renew: extend leases."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.shards import joined, split
from lamplighter.engines.redis.verbs.record import fence_of
from lamplighter.port.values import Renewal, RenewAnswer, Renewed

_CANCELLING = b"cancelling"
_ANSWERS = {
    b"held": RenewAnswer.HELD,
    _CANCELLING: RenewAnswer.HELD,
    b"lost": RenewAnswer.LOST,
}


async def renew(call: Call, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
    """Extend what still runs under its fence."""
    parts: list[tuple[Sequence[int], list[Renewed]]] = []
    for shard, (places, mine) in split(leases, call.shards).items():
        arguments: list[Argument] = [lease_ms]
        for lease in mine:
            arguments += (lease.id, fence_of(lease.fence))
        said = await call.run("renew", arguments, shard=shard, urgent=True)
        answers = [
            Renewed(lease.id, _ANSWERS[answer], answer == _CANCELLING)
            for lease, answer in zip(mine, said, strict=True)
        ]
        parts.append((places, answers))
    return joined(parts)
