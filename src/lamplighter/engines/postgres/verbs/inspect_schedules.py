"""The reads of schedules: one, many, and the runs of one."""

from __future__ import annotations

from lamplighter.engines.postgres import filters
from lamplighter.engines.postgres.call import Call, Row
from lamplighter.model.ids import schedule_key
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.rows import SCHEDULE_WIDTH, schedule_of
from lamplighter.port.schedules import (
    RunKind,
    RunPage,
    RunRecord,
    RunState,
    ScheduleFilter,
    SchedulePage,
    ScheduleRecord,
)
from lamplighter.port.stretches import Stretch, stretches
from lamplighter.port.texts import clean
from lamplighter.port.values import SCAN_LIMIT

_KEY, _FITS, _LOOKED = SCHEDULE_WIDTH, SCHEDULE_WIDTH + 1, SCHEDULE_WIDTH + 2
_FIND = "%s, %s, %s, %s::integer, %s::integer, %s, %s, %s"


async def schedule(call: Call, tenant: str, schedule_id: str) -> ScheduleRecord | None:
    """Return one schedule."""
    key = schedule_key(tenant, schedule_id)
    if clean(key) != key:
        return None
    rows = await call.rows(f"SELECT * FROM {call.function('read_schedule')}(%s)", (key,))
    return schedule_of(rows[0]) if rows else None


async def schedules(
    call: Call, which: ScheduleFilter, limit: int, cursor: str | None
) -> SchedulePage:
    """List schedules by key; a page looks at a bounded stretch of them."""
    found: list[ScheduleRecord] = []
    for stretch in stretches(which, cursor):
        rows = await _look(call, which, stretch, limit - len(found))
        found += [schedule_of(row) for row in rows if row[_FITS]]
        # The last one may be there only for its place.
        if rows and (len(found) == limit or rows[-1][_LOOKED] == SCAN_LIMIT):
            return SchedulePage(found, rows[-1][_KEY])
    return SchedulePage(found, None)


async def _look(call: Call, which: ScheduleFilter, stretch: Stretch, limit: int) -> list[Row]:
    return await call.rows(
        f"SELECT * FROM {call.function('find_schedules')}({_FIND})",
        (
            stretch.after,
            stretch.prefix,
            which.prefix,
            SCAN_LIMIT,
            limit,
            filters.wanted(which.types),
            which.held,
            which.zones_not,
        ),
    )


async def runs(
    call: Call, tenant: str, schedule_id: str, limit: int, cursor: str | None
) -> RunPage:
    """List the runs of a schedule, the latest due first."""
    (before,) = place_of(cursor, 1)
    key = schedule_key(tenant, schedule_id)
    if clean(key) != key:
        return RunPage([], None)
    rows = await call.rows(
        f"SELECT * FROM {call.function('read_runs')}(%s, %s::bigint, %s::integer)",
        (key, before, limit),
    )
    place = cursor_of((rows[-1][0],)) if rows and len(rows) == limit else None
    return RunPage([_run(schedule_id, row) for row in rows], place)


def _run(schedule_id: str, row: Row) -> RunRecord:
    return RunRecord(
        schedule=schedule_id,
        due_ms=row[0],
        kind=RunKind(row[1]),
        state=RunState(row[2]),
        at_ms=row[3],
        job_id=row[4],
        reason=row[5],
        first_ms=row[6],
        count=row[7],
        started_at_ms=row[8],
        finished_at_ms=row[9],
    )
