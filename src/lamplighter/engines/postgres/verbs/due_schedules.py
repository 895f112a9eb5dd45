"""due_schedules: hand out schedules that are due."""

from __future__ import annotations

from operator import itemgetter

from lamplighter.engines.postgres.call import Call
from lamplighter.port.rows import SCHEDULE_WIDTH, schedule_of
from lamplighter.port.schedules import DueSchedule, DueSchedules

_BACKFILLING, _PLACE = SCHEDULE_WIDTH, SCHEDULE_WIDTH + 1
_PARAMETERS = "%s::integer, %s::bigint, %s"


async def due_schedules(
    call: Call,
    limit: int,
    lease_ms: int,
    newest_first: bool,  # noqa: FBT001 - verbs are called by position
) -> DueSchedules:
    """Ask for schedules; the last row has none, but says what the time is."""
    *rows, last = await call.rows(
        f"SELECT * FROM {call.function('due_schedules')}({_PARAMETERS})",
        (limit, lease_ms, newest_first),
    )
    rows.sort(key=itemgetter(_PLACE))
    now, poll_after, oldest = last[-3:]
    return DueSchedules(
        schedules=[
            DueSchedule(record=schedule_of(row), backfilling=row[_BACKFILLING]) for row in rows
        ],
        now_ms=now,
        poll_after_ms=poll_after,
        oldest_ms=oldest,
    )
