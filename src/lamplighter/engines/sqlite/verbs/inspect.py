"""The reads of jobs, dead letters, queues, tenants, types and workers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.engines.sqlite.statements import load
from lamplighter.model.filters import Filter, matcher, statuses_of
from lamplighter.model.job import Attempt, JobRecord, JobState, Level, version_in
from lamplighter.model.journal import Piece
from lamplighter.port import texts
from lamplighter.port.cursors import cursor_of, place_of
from lamplighter.port.health import DEAD_MS, at_work, health
from lamplighter.port.reasons import Surroundings, reasons
from lamplighter.port.rows import attempt_of, stored_record_of, tenant_of
from lamplighter.port.values import (
    BEHIND_LIMIT,
    COUNT_LIMIT,
    LEVEL_LIMIT,
    SCAN_LIMIT,
    TENANT_LIMIT,
    DeadGroup,
    DeadGroups,
    Explanation,
    JobPage,
    LogPiece,
    QueueInfo,
    TenantInfo,
    TypeRow,
    WorkerInfo,
)
from lamplighter.port.versions import seats_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.engines.sqlite.transaction import Row, Transaction
    from lamplighter.model.job import Job, Mark

SQL = load("inspect")

_BEFORE_ALL = (-1, -1)
_STATES = {
    "ready": "waiting",
    "scheduled": "waiting",
    "retrying": "waiting",
    "paused": "waiting",
    "claimed": "running",
    "cancelling": "running",
}
"""What the database knows of statuses that are called otherwise there."""


def job(tx: Transaction, job_id: str) -> JobRecord | None:
    """Return one job."""
    row = tx.one(SQL["job"], job_id)
    return None if row is None else _record(tx, row)


def jobs(tx: Transaction, which: Filter, limit: int, cursor: str | None) -> JobPage:
    """List jobs, newest first; a filter without an index looks at a bounded stretch per page.

    Dead letters have an index of their own and are listed by the time of death.
    """
    coarse: tuple[object, ...] = (_lanes(tx, which), _listed(which.tenants))
    if statuses_of(which) == frozenset({"dead"}):
        name, keys = "dead", (-3, -2)
    else:
        name, keys, coarse = "jobs", (-2,), _coarse(which, *coarse)
    place = place_of(cursor, len(keys))
    beyond = tx.one(SQL[f"beyond_{name}"], *place, SCAN_LIMIT)
    end = (-1,) * len(keys) if beyond is None else tuple(beyond)
    matches, found, step = matcher(which), list[JobRecord](), max(100, limit)
    while True:
        rows = tx.all(SQL[name], *place, *end, *coarse, step)
        for row in rows:
            place, record = tuple(row[key] for key in keys), _record(tx, row)
            if matches(record):
                found.append(record)
            if len(found) == limit:
                return JobPage(found, cursor_of(place))
        if len(rows) < step:
            # The one beyond is the first of the next page: a cursor stands before it.
            return JobPage(found, None if beyond is None else cursor_of((*end[:-1], end[-1] + 1)))


def _coarse(which: Filter, *listed: object) -> tuple[object, ...]:
    """Return what the database can tell of a filter, in the order of the statement."""
    statuses = statuses_of(which)
    return (
        _listed(sorted({_STATES.get(status, status) for status in statuses})),
        *listed,
        _listed(which.schedules),
        which.tag,
        which.created_after_ms,
        which.created_before_ms,
        which.finished_after_ms,
        which.finished_before_ms,
        statuses == frozenset({"paused"}),
        statuses == frozenset({"retrying"}),
        bool(which.fingerprints) and "" not in which.fingerprints,
    )


def _lanes(tx: Transaction, which: Filter) -> str | None:
    """Return the lanes that types and queues mean, as JSON; None: all."""
    if not which.types and not which.queues:
        return None
    return json.dumps(
        [
            lane.id
            for lane in tx.catalog.all_lanes()
            if (not which.types or lane.type in which.types)
            and (not which.queues or lane.queue in which.queues)
        ]
    )


def _listed(names: Sequence[str]) -> str | None:
    """Return names as JSON; None: whatever they are."""
    return json.dumps(names) if names else None


def counts(tx: Transaction) -> dict[str, int]:
    """Count jobs per state, each exact up to its limit."""
    found = dict.fromkeys((state.value for state in JobState), 0)
    for state, count in tx.all(SQL["counts"], COUNT_LIMIT):
        found[state] = min(COUNT_LIMIT, found[state] + count)
    return found


def queues(tx: Transaction, most: int) -> list[QueueInfo]:
    """List queues with what waits and runs in them."""
    running: dict[str, int] = {}
    for lane_id, count in tx.all(SQL["running_lanes"]):
        queue = tx.catalog.by_id(lane_id).queue
        running[queue] = running.get(queue, 0) + count
    found = [
        (row[4], _queue(tx, row, running.get(row[0], 0), most)) for row in tx.all(SQL["queues"])
    ]
    return [info for removed, info in found if not removed or info.busy]


def queue(tx: Transaction, name: str) -> QueueInfo | None:
    """Return one queue with what waits and runs in it."""
    row = tx.one(SQL["one_queue"], name) if texts.clean(name) == name else None
    if row is None:
        return None
    lanes = json.dumps([lane.id for lane in tx.catalog.lanes_of(name)])
    info = _queue(tx, row, tx.number(SQL["running_in_lanes"], lanes), COUNT_LIMIT)
    return info if info.busy or not row[4] else None


def _queue(tx: Transaction, row: Row, running: int, most: int) -> QueueInfo:
    ready = scheduled = 0
    oldest: dict[Level, int] = {}
    by_level = dict.fromkeys(Level, 0)
    for lane in tx.catalog.lanes_of(row[0]) if most else ():
        rest = min(most, LEVEL_LIMIT) - by_level[lane.level]
        due = _count(tx, "ready_in_lane", lane.id, max(most - ready, rest))
        later = _count(tx, "scheduled_in_lane", lane.id, max(most - scheduled, rest))
        ready, scheduled = ready + due, scheduled + later
        by_level[lane.level] += due + later
        head = oldest_head(tx, lane.id)
        if head is not None:
            oldest[lane.level] = max(oldest.get(lane.level, 0), tx.now - head[0])
    return QueueInfo(
        name=row[0],
        ready=min(ready, most),
        scheduled=min(scheduled, most),
        running=running,
        held=texts.mark_of(row[3]),
        max_wait_ms=row[2],
        oldest_due_ms=max(oldest.values(), default=None),
        handouts=row[1],
        by_level={level: min(count, most) for level, count in by_level.items()},
        oldest_by_level=oldest,
    )


def _count(tx: Transaction, statement: str, lane: int, most: int) -> int:
    return tx.number(SQL[statement], lane, tx.now, most) if most > 0 else 0


def oldest_head(tx: Transaction, lane: int) -> tuple[int, int] | None:
    """Return due time and sequence of the job of a lane that has been due for longest."""
    heads = [
        head
        for name in ("oldest_in_line", "oldest_asleep")
        if (head := tx.one(SQL[name], lane, tx.now)) is not None
    ]
    return min(heads, default=None)


def held(tx: Transaction, tenant: str, most: int) -> int:
    """Count the waiting jobs of a tenant that are held."""
    return tx.number(SQL["held_of"], tenant, most)


def tenants(tx: Transaction) -> list[TenantInfo]:
    """List tenants with settings or jobs."""
    running = dict(tx.all(SQL["running_tenants"]))
    waiting = dict(tx.all(SQL["waiting_tenants"]))
    return [
        TenantInfo(
            name=name,
            weight=weight,
            held=texts.mark_of(hold),
            waiting=min(waiting.get(name, 0), COUNT_LIMIT),
            running=running.get(name, 0),
        )
        for name, weight, hold in tx.all(SQL["tenants"], TENANT_LIMIT)
    ]


def tenant(tx: Transaction, name: str) -> TenantInfo | None:
    """Return one tenant with settings or jobs."""
    row = tx.one(SQL["one_tenant"], name, COUNT_LIMIT) if texts.clean(name) == name else None
    return None if row is None else tenant_of(name, row)


def types(tx: Transaction) -> list[TypeRow]:
    """List published types."""
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
        for row in tx.all(SQL["types"], tx.now - DEAD_MS)
    ]


def workers(tx: Transaction) -> list[WorkerInfo]:
    """List workers with their state of health."""
    return [
        WorkerInfo(
            id=row[0],
            host=row[1],
            pid=row[2],
            queues=tuple(json.loads(row[3])),
            types=tuple((row[8] or "").split("\n")) if row[8] else (),
            slots=row[4],
            running=at_work(row[5], tx.now - row[7]),
            joined_at_ms=row[6],
            beat_at_ms=row[7],
            state=health(tx.now - row[7]),
            version_slot=row[9],
        )
        for row in tx.all(SQL["workers"])
    ]


def attempts(tx: Transaction, job_id: str, until: int | None, limit: int) -> list[Attempt]:
    """Return the newest of the past attempts that are kept, and the present one."""
    newest = tx.all(SQL["attempts"], job_id, until, limit)
    return [attempt_of(row) for row in reversed(newest)]


def logs(
    tx: Transaction, job_id: str, tenant: str | None, after: tuple[int, int] | None, limit: int
) -> list[LogPiece]:
    """Return pieces of a job's log behind a place."""
    rows = tx.all(SQL["logs"], job_id, tenant, *(after or _BEFORE_ALL), limit)
    return [LogPiece(lease, Piece(number, data)) for lease, number, data in rows]


def dead_groups(tx: Transaction, which: Filter, most: int) -> DeadGroups:
    """Group dead letters by type and fingerprint."""
    statuses = statuses_of(which)
    if statuses and "dead" not in statuses:
        return DeadGroups([], at_least=False)
    rows = tx.all(
        SQL["dead_groups"],
        most,
        _lanes(tx, which),
        _listed(which.tenants),
        _listed(which.schedules),
        _listed(which.fingerprints),
        which.tag,
        which.created_after_ms,
        which.created_before_ms,
        which.finished_after_ms,
        which.finished_before_ms,
    )
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row[3], reverse=True):
        groups.setdefault((tx.catalog.by_id(row[0]).type, row[1]), []).append(row)
    found = [
        DeadGroup(
            fingerprint=fingerprint,
            type=type_name,
            queue=tx.catalog.by_id(parts[0][0]).queue,
            error=texts.error_of(parts[0][7]),
            reason=parts[0][6] or "",
            count=sum(part[2] for part in parts),
            newest_at_ms=parts[0][4] or 0,
            example=parts[0][5],
        )
        for (type_name, fingerprint), parts in groups.items()
    ]
    found.sort(key=lambda group: (-group.count, group.type, group.fingerprint))
    older = tx.one(SQL["beyond_dead"], *place_of(None, 2), most)
    return DeadGroups(found, at_least=older is not None)


def explain(tx: Transaction, job_id: str) -> Explanation | None:
    """Say why a job is not running: all reasons, the most decisive first."""
    row = tx.one(SQL["job"], job_id)
    if row is None:
        return None
    *_, seq, lane = row
    record = _record(tx, row)
    if record.state is JobState.WAITING:
        around = _around(tx, record.job, seq, lane)
    elif record.state is JobState.RUNNING:
        around = Surroundings(now_ms=tx.now, types=types(tx), workers=workers(tx))
    else:
        around = Surroundings(now_ms=tx.now)
    return Explanation(record, reasons(record, around))


def _around(tx: Transaction, job: Job, seq: int, lane: int) -> Surroundings:
    version = version_in(tx.catalog.by_id(lane).requirement)
    return Surroundings(
        now_ms=tx.now,
        queue_hold=_mark(tx, "queue", job.queue),
        type_hold=_mark(tx, "type", job.type),
        tenant_hold=_mark(tx, "tenant", job.tenant),
        workers=workers(tx),
        behind=tx.number(SQL["behind"], lane, job.tenant, job.due_at_ms, seq, BEHIND_LIMIT),
        version=version,
        types=types(tx) if version else (),
    )


def _mark(tx: Transaction, table: str, name: str) -> Mark | None:
    row = tx.one(SQL[table], name)
    return None if row is None else texts.mark_of(row[-1])


def _record(tx: Transaction, row: Row) -> JobRecord:
    return stored_record_of(row, tx.catalog.by_id(row[-1]), tx.now)
