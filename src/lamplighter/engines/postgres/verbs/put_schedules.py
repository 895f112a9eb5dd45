"""put_schedules: create or change schedules."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.engines.postgres import arrays
from lamplighter.engines.postgres.call import Call
from lamplighter.port.schedules import NewSchedule, Put, PutAnswer

_PARAMETERS = ", ".join(["%s"] * 8)


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
            _expected(schedules),
        ),
    )
    answers = {place: (PutAnswer(answer), version) for place, answer, version in rows}
    return [Put(one.id, *answers[place]) for place, one in enumerate(schedules, 1)]


def _expected(schedules: Sequence[NewSchedule]) -> str | None:
    """Return the versions that they must have; None where nobody expects any."""
    versions = [one.expect_version for one in schedules]
    return None if versions.count(None) == len(versions) else arrays.numbers(versions)
