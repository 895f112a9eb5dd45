"""tally, activity, standing: what happened by the minute, and what waits as a whole."""

from __future__ import annotations

from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.verbs.inspect import clock
from lamplighter.model import activity as days
from lamplighter.model.activity import Minute, Tally
from lamplighter.port.activity import Oldest, Standing
from lamplighter.port.values import COUNT_LIMIT


async def tally(call: Call, worker: str, number: int, tally: Tally) -> bool:
    """Add what a worker has counted to the present minute, unless that was done before."""
    ((new,),) = await call.rows(
        f"SELECT {call.function('tally')}(%s, %s::bigint, %s::bigint[])",
        (worker, number, list(tally.numbers)),
    )
    return new


async def activity(call: Call, minutes: int) -> list[Minute]:
    """Read the last minutes."""
    rows = await call.rows(
        f"SELECT clock.now, minute.minute, minute.counts FROM {clock(call)} LEFT JOIN LATERAL "
        f"{call.function('read_activity')}(clock.now, %s::integer) AS minute ON true",
        (minutes,),
    )
    found = (Minute(at_ms, days.tally_of(counts)) for _, at_ms, counts in rows if counts)
    return days.filled(found, rows[0][0], minutes)


async def standing(call: Call) -> Standing:
    """Look at what waits as a whole."""
    ((now, held, oldest, queue, due, wake),) = await call.rows(
        f"SELECT clock.now, seen.* FROM {clock(call)} CROSS JOIN LATERAL "
        f"{call.function('read_standing')}(clock.now, %s::integer) AS seen",
        (COUNT_LIMIT,),
    )
    return Standing(
        at_ms=now,
        held=held,
        oldest=None if oldest is None else Oldest(oldest, queue, now - due),
        fire_lag_ms=0 if wake is None else max(0, now - wake),
    )
