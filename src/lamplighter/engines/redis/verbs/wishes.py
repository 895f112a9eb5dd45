"""What the operators' verbs for schedules share: send each to its shard, answer in order."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.schedule_records import is_id
from lamplighter.engines.redis.shards import joined, split_schedules
from lamplighter.model.ids import schedule_key
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged
from lamplighter.port.texts import is_nobody

_AGAIN = b"again"
_UNKNOWN = b"unknown"


async def wish(
    call: Call, verb: str, ids: Sequence[str], tenant: str, *parameters: Argument
) -> list[ScheduleChanged]:
    """Run a verb on the shards of these schedules, and again for those that are not done.

    One that is named twice is asked for twice.
    """
    if is_nobody(tenant):
        return [ScheduleChanged(one, ScheduleAnswer.UNKNOWN) for one in ids]
    parts: list[tuple[Sequence[int], list[ScheduleChanged]]] = []
    for shard, (places, mine) in split_schedules(
        ids, lambda one: (tenant, one), call.shards
    ).items():
        said = [_AGAIN if is_id(one) else _UNKNOWN for one in mine]
        while left := [place for place, answer in enumerate(said) if answer == _AGAIN]:
            some = [schedule_key(tenant, mine[place]) for place in left]
            found = await call.run(verb, (*parameters, *some), shard=shard)
            for place, answer in zip(left, found, strict=True):
                said[place] = answer
        answers = [
            ScheduleChanged(one, ScheduleAnswer(answer.decode()))
            for one, answer in zip(mine, said, strict=True)
        ]
        parts.append((places, answers))
    return joined(parts)
