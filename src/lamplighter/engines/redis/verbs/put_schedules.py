"""put_schedules: create or change schedules."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis import inputs
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.schedule_records import check_id
from lamplighter.engines.redis.shards import joined, split_schedules
from lamplighter.model.ids import schedule_key
from lamplighter.port import texts
from lamplighter.port.schedules import NewSchedule, Put, PutAnswer

_ANSWERS = {answer.value.encode(): answer for answer in PutAnswer}


async def put_schedules(call: Call, schedules: Sequence[NewSchedule]) -> list[Put]:
    """Put each, in one write per shard."""
    # All are looked at before the first is written.
    packed = [(one, _arguments(one)) for one in schedules]
    parts: list[tuple[Sequence[int], list[Put]]] = []
    for shard, (places, mine) in split_schedules(packed, _key, call.shards).items():
        arguments = [part for _, parts_of_one in mine for part in parts_of_one]
        said = await call.run("put_schedules", arguments, shard=shard)
        answers = [
            Put(one.id, _ANSWERS[what], version)
            for (one, _), what, version in zip(mine, said[::2], said[1::2], strict=True)
        ]
        parts.append((places, answers))
    return joined(parts)


def _key(packed: tuple[NewSchedule, object]) -> tuple[str, str]:
    return packed[0].tenant, packed[0].id


def _arguments(one: NewSchedule) -> tuple[Argument, ...]:
    try:
        name = schedule_key(one.tenant, check_id(one.id))
        what = [part.encode() for part in (name, one.spec, one.tenant, one.type)]
    except inputs.Unkept as error:
        raise inputs.refusal(error) from error
    when = (_optional(one.due_ms), texts.clean(one.zones), _optional(one.first_ms))
    return (*what, *when, _optional(one.expect_version))


def _optional(number: int | None) -> Argument:
    return "" if number is None else number
