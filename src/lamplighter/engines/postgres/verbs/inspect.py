"""The reads: one job, many jobs, dead letters, queues, tenants, types, workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from lamplighter.engines.postgres import filters, ids, records
from lamplighter.engines.postgres.call import Call, Row
from lamplighter.model.filters import Filter, coarse_statuses, matcher, statuses_of
from lamplighter.model.job import Attempt, JobRecord, JobState, Level
from lamplighter.model.journal import Piece
from lamplighter.port import texts
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.health import DEAD_MS, at_work, health
from lamplighter.port.rows import attempt_of, tenant_of
from lamplighter.port.values import (
    COUNT_LIMIT,
    SCAN_LIMIT,
    TENANT_LIMIT,
    DeadGroup,
    DeadGroups,
    JobPage,
    LogPiece,
    QueueInfo,
    TenantInfo,
    TypeRow,
    WorkerInfo,
)
from lamplighter.port.versions import seats_of

COUNTED = 1_000_000
"""Waiting jobs up to which those of all tenants are counted one by one, which is the quickest."""
_BEFORE_ALL = (-1, -1)
_PAGE = "%s::integer, %s::integer"

# Columns of the view `seen_job` behind those that `records` reads, and of the statements here.
FINISHED = 26
SEQ = 33
NOW = 35
MORE = 36


async def job(call: Call, job_id: str) -> JobRecord | None:
    """Return one job."""
    rows = await call.rows(
        f"SELECT seen.*, clock.now FROM {clock(call)} "
        f"CROSS JOIN {call.function('read_jobs')}(%s) AS seen",
        (ids.uuids([job_id]),),
    )
    return records.record_of(rows[0], rows[0][NOW]) if rows else None


async def jobs(call: Call, which: Filter, limit: int, cursor: str | None) -> JobPage:
    """List jobs, newest first; a filter without an index looks at a bounded stretch per page.

    Dead letters have an index of their own and are listed by the time of death.
    """
    statuses = statuses_of(which)
    if statuses == frozenset({"dead"}):
        keys, order = (FINISHED, SEQ), "seen.finished DESC, seen.seq DESC"
        given = (*place_of(cursor, 2), SCAN_LIMIT, limit, *filters.parameters(which))
        search = f"{call.function('find_dead')}(%s, %s, {_PAGE}, {filters.PLACES})"
    else:
        keys, order = (SEQ,), "seen.seq DESC"
        asked = (list(coarse_statuses(which)) or None, *filters.parameters(which))
        given = (*place_of(cursor, 1), SCAN_LIMIT, limit, *asked)
        search = f"{call.function('find_jobs')}(clock.now, %s, {_PAGE}, %s, {filters.PLACES})"
    rows = await call.rows(
        f"SELECT seen.*, clock.now, found.more FROM {clock(call)} "
        f"CROSS JOIN LATERAL {search} AS found "
        f"CROSS JOIN LATERAL {call.function('read_jobs')}(found.ids) AS seen "
        f"ORDER BY {order}",
        given,
    )
    # The last one may be there only for its place.
    matches = matcher(which)
    found = [records.record_of(row, row[NOW]) for row in rows]
    more = bool(rows) and rows[-1][MORE]
    place = cursor_of(tuple(rows[-1][key] for key in keys)) if more else None
    return JobPage([record for record in found if matches(record)], place)


def clock(call: Call) -> str:
    """Return the part of a statement that reads the clock, once."""
    return f"(SELECT {call.function('now_ms')}() AS now) AS clock"


async def counts(call: Call) -> dict[str, int]:
    """Count jobs per state, each exact up to its limit."""
    found = dict.fromkeys((state.value for state in JobState), 0)
    rows = await call.rows(f"SELECT * FROM {call.function('read_counts')}(%s)", (COUNT_LIMIT,))
    for state, count in rows:
        found[state] = min(COUNT_LIMIT, count)
    return found


async def queues(call: Call, most: int, name: str | None = None) -> list[QueueInfo]:
    """List queues with what waits and runs in them; with a name, that one alone."""
    rows = await call.rows(
        f"SELECT queue.*, clock.now FROM {clock(call)} "
        f"CROSS JOIN LATERAL {call.function('read_queues')}(clock.now, %s, %s) AS queue "
        "ORDER BY queue.name, queue.level",
        (most, name),
    )
    groups = [list(levels) for _, levels in groupby(rows, key=lambda row: row[0])]
    found = [(levels[0][9], _queue(levels, most)) for levels in groups]
    return [info for removed, info in found if not removed or info.busy]


async def queue(call: Call, name: str) -> QueueInfo | None:
    """Return one queue with what waits and runs in it."""
    if texts.clean(name) != name:
        return None
    return next(iter(await queues(call, COUNT_LIMIT, name)), None)


def _queue(levels: list[Row], most: int) -> QueueInfo:
    """Put the rows of one queue together; one that never had jobs has a row without a level."""
    name, handouts, max_wait, hold = levels[0][:4]
    now = levels[0][10]
    oldest = {records.LEVELS[row[4]]: now - row[8] for row in levels if row[8] is not None}
    by_level = dict.fromkeys(Level, 0)
    for row in levels:
        if row[4] is not None:
            by_level[records.LEVELS[row[4]]] = min(most, row[5] + row[6])
    return QueueInfo(
        name=name,
        ready=min(most, sum(row[5] or 0 for row in levels)),
        scheduled=min(most, sum(row[6] or 0 for row in levels)),
        running=sum(row[7] or 0 for row in levels),
        held=texts.mark_of(hold),
        max_wait_ms=max_wait,
        oldest_due_ms=max(oldest.values(), default=None),
        handouts=handouts,
        by_level=by_level,
        oldest_by_level=oldest,
    )


async def tenants(call: Call) -> list[TenantInfo]:
    """List tenants with settings or jobs."""
    rows = await call.rows(
        f"SELECT * FROM {call.function('read_tenants')}(%s, %s, %s) ORDER BY name",
        (TENANT_LIMIT, COUNT_LIMIT, COUNTED),
    )
    return [
        TenantInfo(
            name=name,
            weight=weight,
            held=texts.mark_of(hold),
            waiting=waiting,
            running=running,
        )
        for name, weight, hold, waiting, running in rows
    ]


async def tenant(call: Call, name: str) -> TenantInfo | None:
    """Return one tenant with settings or jobs."""
    if texts.clean(name) != name:
        return None
    rows = await call.rows(
        f"SELECT * FROM {call.function('read_tenant')}(%s, %s)", (name, COUNT_LIMIT)
    )
    return tenant_of(name, rows[0])


async def types(call: Call) -> list[TypeRow]:
    """List published types."""
    rows = await call.rows(
        f"SELECT * FROM {call.function('read_types')}("
        f"{call.function('now_ms')}() OPERATOR(pg_catalog.-) %s::bigint)",
        (DEAD_MS,),
    )
    return [
        TypeRow(
            name=row[0],
            queue=row[1],
            schema=row[2],
            hash=row[3],
            options=json.loads(row[4]),
            held=texts.mark_of(row[5]),
            live_workers=row[6],
            seats=seats_of(row[7]),
        )
        for row in rows
    ]


async def workers(call: Call) -> list[WorkerInfo]:
    """List workers with their state of health."""
    rows = await call.rows(
        f"SELECT worker.*, clock.now FROM {clock(call)} "
        f"CROSS JOIN {call.function('read_workers')}() AS worker "
        "ORDER BY worker.joined, worker.id",
    )
    return [worker_of(row, row[10]) for row in rows]


def worker_of(row: Sequence[Any], now: int) -> WorkerInfo:
    """Build a WorkerInfo from the columns of `read_workers`."""
    return WorkerInfo(
        id=row[0],
        host=row[1],
        pid=row[2],
        queues=tuple(json.loads(row[3])),
        types=tuple(row[4] or ()),
        slots=row[5],
        running=at_work(row[6], now - row[8]),
        joined_at_ms=row[7],
        beat_at_ms=row[8],
        state=health(now - row[8]),
        version_slot=row[9],
    )


async def attempts(call: Call, job_id: str, until: int | None, limit: int) -> list[Attempt]:
    """Return the newest of the past attempts that are kept, and the present one."""
    newest = await call.rows(
        f"SELECT * FROM {call.function('read_attempts')}(%s, %s::bigint, %s::integer)",
        (ids.uuid(job_id), until, limit),
    )
    return [attempt_of(row) for row in reversed(newest)]


async def logs(
    call: Call, job_id: str, tenant: str | None, after: tuple[int, int] | None, limit: int
) -> list[LogPiece]:
    """Return pieces of a job's log behind a place."""
    if texts.is_nobody(tenant):
        return []
    rows = await call.rows(
        f"SELECT * FROM {call.function('read_logs')}(%s, %s, %s::bigint, %s::bigint, %s::integer)",
        (ids.uuid(job_id), tenant, *(after or _BEFORE_ALL), limit),
    )
    return [LogPiece(lease, Piece(number, data)) for lease, number, data in rows]


async def dead_groups(call: Call, which: Filter, most: int) -> DeadGroups:
    """Group dead letters by type and fingerprint."""
    statuses = statuses_of(which)
    if statuses and "dead" not in statuses:
        return DeadGroups([], at_least=False)
    parameters = (most, *filters.parameters(which))
    rows = await call.rows(
        f"SELECT * FROM {call.function('read_dead_groups')}(%s, {filters.PLACES})", parameters
    )
    found = [
        DeadGroup(
            fingerprint=row[0],
            type=row[1],
            queue=row[2],
            error=texts.error_of(row[3]),
            reason=row[4] or "",
            count=row[5],
            newest_at_ms=row[6],
            example=row[7],
        )
        for row in rows
    ]
    found.sort(key=lambda group: (-group.count, group.type, group.fingerprint))
    ((older,),) = await call.rows(f"SELECT {call.function('has_older_dead')}(%s)", (most,))
    return DeadGroups(found, at_least=older)
