"""put_schedules: create or change schedules."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays
from lamplighter.engines.postgres.call import Call
from lamplighter.port.schedules import NewSchedule, Put, PutAnswer

_PARAMETERS = ", ".join(["%s"] * 10)


async def put_schedules(call: Call, schedules: Sequence[NewSchedule]) -> list[Put]:
    """Put all in one write, answering in order."""
    rows = await call.rows(
        f"SELECT n, answer, version FROM {call.function('put_schedules')}({_PARAMETERS})",
        (
            arrays.texts([one.id for one in schedules]),
            arrays.texts([one.spec for one in schedules]),
            arrays.texts([one.tenant for one in schedules]),
            arrays.texts([one.type for one in schedules]),
            arrays.numbers([one.due_ms for one in schedules]),
            arrays.texts([one.zones for one in schedules]),
            arrays.numbers([one.first_ms for one in schedules]),
            *_expected(schedules),
        ),
    )
    answers = {place: (PutAnswer(answer), version) for place, answer, version in rows}
    return [Put(one.id, *answers[place]) for place, one in enumerate(schedules, 1)]


def _expected(schedules: Sequence[NewSchedule]) -> tuple[str, str, str] | tuple[None, None, None]:
    """Give whose they must be and of which version; nothing where nobody expects anything."""
    if all(one.expect_tenant is None and one.expect_version is None for one in schedules):
        return None, None, None
    return (
        arrays.texts([one.expect_tenant or "" for one in schedules]),
        arrays.flags([one.expect_tenant is not None for one in schedules]),
        arrays.numbers([one.expect_version for one in schedules]),
    )
