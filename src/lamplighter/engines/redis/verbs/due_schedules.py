"""due_schedules: hand out schedules that are due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.schedule_records import due_of
from lamplighter.port.checkup import Overdue
from lamplighter.port.schedules import DueSchedule, DueSchedules

_AT_ONCE = 100
_LOOK = ""


async def due_schedules(
    call: Call,
    limit: int,
    lease_ms: int,
    newest_first: bool,  # noqa: FBT001 - verbs are called by position
) -> DueSchedules:
    """Ask the store; of several shards each gives those that are first among all."""
    limit = max(0, min(limit, _AT_ONCE))
    order = 1 if newest_first else 0
    if call.shards == 1:
        answers = [await call.run("due_schedules", (limit, lease_ms, order))]
    else:
        answers = await _ask_all(call, limit, lease_ms, order)
    found = [pair for said in answers for pair in _read(said)]
    if call.shards > 1:
        # Stable: those of one shard are in order.
        found.sort(key=_since, reverse=newest_first)
    now: int = max(said[0] for said in answers)
    oldest = min((since for since, _ in found), default=now)
    polls = [said[1] for said in answers if said[1] != b""]
    return DueSchedules(
        schedules=[one for _, one in found],
        now_ms=now,
        poll_after_ms=min(polls, default=None),
        oldest_ms=max(0, now - oldest),
    )


async def overdue_schedules(call: Call) -> Overdue:
    """Look at those that are due, and leave them where they are; at some of each shard."""
    number = oldest = 0
    for shard in range(call.shards):
        now, _, dues, *_ = await call.run("due_schedules", (_AT_ONCE, _LOOK, 0), shard=shard)
        number += len(dues)
        oldest = max(oldest, now - min(dues, default=now))
    return Overdue(number, oldest)


async def _ask_all(call: Call, limit: int, lease_ms: int, order: int) -> list[Any]:
    """Look at all shards, then take from each as many as are among the first of all."""
    looks = [
        await call.run("due_schedules", (limit, _LOOK, order), shard=shard)
        for shard in range(call.shards)
    ]
    dues = [(due, shard) for shard, said in enumerate(looks) for due in said[2]]
    dues.sort(reverse=order == 1)
    numbers = Counter(shard for _, shard in dues[:limit])
    return [
        await call.run("due_schedules", (numbers[shard], lease_ms, order), shard=shard)
        if numbers[shard]
        else said
        for shard, said in enumerate(looks)
    ]


def _read(said: Sequence[Any]) -> list[tuple[int, DueSchedule]]:
    """Return the schedules, each with the time since which it is due."""
    _, _, dues, names, values, specs = said
    return [
        (since, due_of(name, value, spec or b""))
        for since, name, value, spec in zip(dues, names, values, specs, strict=False)
        if value
    ]


def _since(found: tuple[int, DueSchedule]) -> int:
    return found[0]
