"""put, hold, unhold, backfill and delete schedules: what operators and programs do to them."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.redis import inputs, records
from lamplighter.engines.redis.call import Argument, Call
from lamplighter.engines.redis.schedule_records import (
    backfill_to_text,
    check_id,
    is_id,
    same_backfill,
)
from lamplighter.engines.redis.shards import joined, shard_of_schedule, split_schedules
from lamplighter.model.ids import schedule_key
from lamplighter.port import texts
from lamplighter.port.schedules import (
    Backfill,
    NewSchedule,
    Put,
    PutAnswer,
    ScheduleAnswer,
    ScheduleChanged,
)

_AGAIN, _UNKNOWN = b"again", b"unknown"
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


async def backfill(call: Call, schedule_id: str, wanted: Backfill, tenant: str) -> ScheduleChanged:
    """Note what is to be run, unless something is under way."""
    if not is_id(schedule_id) or texts.is_nobody(tenant):
        return ScheduleChanged(schedule_id, ScheduleAnswer.UNKNOWN)
    said: bytes = await call.run(
        "backfill",
        (schedule_key(tenant, schedule_id), same_backfill(wanted), backfill_to_text(wanted)),
        shard=shard_of_schedule(tenant, schedule_id, call.shards),
    )
    return ScheduleChanged(schedule_id, ScheduleAnswer(said.decode()))


async def hold_schedules(
    call: Call, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Keep each from being fired; the first mark stays."""
    return await _change(call, "hold_schedules", ids, tenant, records.mark_to_text(by, reason))


async def unhold_schedules(
    call: Call,
    ids: Sequence[str],
    by: str,  # noqa: ARG001 - the operator's name is told by the event
    reason: str,  # noqa: ARG001 - and so is the reason
    tenant: str,
) -> list[ScheduleChanged]:
    """Unhold each, due now."""
    return await _change(call, "hold_schedules", ids, tenant, "")


async def delete_schedules(
    call: Call, ids: Sequence[str], by: str, reason: str, tenant: str
) -> list[ScheduleChanged]:
    """Remove each, and cancel its queued jobs."""
    about = (records.mark_to_text(by, reason), texts.clean(reason) or "cancelled")
    return await _change(call, "delete_schedules", ids, tenant, *about)


async def _change(
    call: Call, verb: str, ids: Sequence[str], tenant: str, *parameters: Argument
) -> list[ScheduleChanged]:
    """Run a script on the shards of these schedules, and again for those that are not done.

    One that is named twice is asked for twice.
    """
    if texts.is_nobody(tenant):
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
