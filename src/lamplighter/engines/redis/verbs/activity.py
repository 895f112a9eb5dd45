"""tally, activity, standing: what happened by the minute, and what waits as a whole.

Tallies live in shard 0. What waits is asked of every shard.
"""

from __future__ import annotations

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.model import activity as days
from lamplighter.model.activity import MINUTE_MS, MOST_MINUTES, Minute, Tally
from lamplighter.port import texts
from lamplighter.port.activity import Oldest, Standing
from lamplighter.port.values import COUNT_LIMIT

_KEPT_MS = (MOST_MINUTES - 1) * MINUTE_MS


async def tally(call: Call, worker: str, number: int, tally: Tally) -> bool:
    """Add what a worker has counted to the present minute, unless that was done before."""
    said = await call.run("tally", (texts.clean(worker), number, _KEPT_MS, *tally.numbers))
    return said == 1


async def activity(call: Call, minutes: int) -> list[Minute]:
    """Read the last minutes."""
    now, *rest = await call.run("inspect_activity", (minutes,))
    found = (
        Minute(int(at_ms), days.tally_of([int(count) for count in counts.split()]))
        for at_ms, counts in zip(rest[::2], rest[1::2], strict=True)
    )
    return days.filled(found, now, minutes)


async def standing(call: Call) -> Standing:
    """Look at what waits as a whole."""
    now, held, lag = 0, 0, 0
    oldest: Oldest | None = None
    for shard in range(call.shards):
        now, here, wake, *job = await call.run("inspect_standing", (), shard=shard)
        held += here
        lag = max(lag, now - int(float(wake)) if wake else 0)
        if job and (oldest is None or now - job[0] > oldest.due_ms):
            oldest = Oldest(job[1].decode(), records.lane_of(job[2])[0], now - job[0])
    return Standing(at_ms=now, held=min(held, COUNT_LIMIT), oldest=oldest, fire_lag_ms=lag)
