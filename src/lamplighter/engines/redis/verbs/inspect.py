"""The reads about one job, why it does not run, and how many jobs there are.

A store of several shards is read shard by shard, and what they say is put together. What could be
much is read in pages, so that no script keeps the server for long.
"""

from __future__ import annotations

import json

from lamplighter.engines.redis import records
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.shards import shard_of
from lamplighter.engines.redis.verbs.listing import record_of, seen, unstarted_of
from lamplighter.engines.redis.verbs.membership import types, workers
from lamplighter.model.job import Attempt, JobRecord, JobState, Mark, version_in
from lamplighter.model.journal import Piece
from lamplighter.port import texts
from lamplighter.port.reasons import Surroundings, reasons
from lamplighter.port.values import BEHIND_LIMIT, COUNT_LIMIT, Explanation, LogPiece

_PAGE = 500
_ATTEMPTS = 100
"""Of one answer of the script: each may have a traceback."""
_BEFORE_ALL = (-1, -1)
_COUNTED = frozenset({"running", "succeeded", "dead", "cancelled", "expired"})


async def job(call: Call, job_id: str) -> JobRecord | None:
    """Return one job."""
    found = await seen(call, [job_id], shard_of(job_id, call.shards))
    return found[0] if found else None


async def counts(call: Call) -> dict[str, int]:
    """Count jobs per state, each exact up to its limit."""
    found = dict.fromkeys((state.value for state in JobState), 0)
    for shard in range(call.shards):
        _, _, said = await call.run("inspect_counts", (), shard=shard)
        totals = {name.decode(): number for name, number in zip(said[::2], said[1::2], strict=True)}
        # No verb makes blocked jobs yet. What neither runs nor has ended waits.
        totals["waiting"] = totals["jobs"] - sum(totals[state] for state in _COUNTED)
        for state in found.keys() & totals.keys():
            found[state] = min(COUNT_LIMIT, found[state] + totals[state])
    return found


async def attempts(call: Call, job_id: str, until: int | None, limit: int) -> list[Attempt]:
    """Return the newest of the past attempts that are kept, and the present one."""
    newest: list[Attempt] = []
    read, shard = 0, shard_of(job_id, call.shards)
    while said := await call.run("inspect_attempts", (job_id, read), shard=shard):
        now, entry, *page = said
        over = [records.attempt_of(job_id, one) for one in reversed(page)]
        last = [] if read else _last_attempt(record_of(job_id, entry, now))
        for one in (*last, *over):
            # One that has ended between two pages is in both.
            if (until is None or one.lease <= until) and (
                not newest or one.lease < newest[-1].lease
            ):
                newest.append(one)
        read += len(page)
        if len(page) < _ATTEMPTS or len(newest) >= limit:
            break
    return newest[:limit][::-1]


def _last_attempt(record: JobRecord) -> list[Attempt]:
    """Return the attempt that stands in the job alone: it runs, or it succeeded."""
    if record.state not in {JobState.RUNNING, JobState.SUCCEEDED}:
        return []
    return [
        Attempt(
            job_id=record.job.id,
            generation=record.job.generation,
            lease=record.lease,
            nonce=record.nonce or "",
            number=record.job.attempt + 1,
            worker=record.worker or "",
            outcome=record.state.value,
            started_at_ms=record.claimed_at_ms or 0,
            finished_at_ms=record.finished_at_ms,
            error=None,
        )
    ]


async def logs(
    call: Call, job_id: str, tenant: str | None, after: tuple[int, int] | None, limit: int
) -> list[LogPiece]:
    """Return pieces of a job's log behind a place."""
    if texts.is_nobody(tenant):
        return []
    found: list[LogPiece] = []
    place = after or _BEFORE_ALL
    shard = shard_of(job_id, call.shards)
    while len(found) < limit:
        wanted = min(_PAGE, limit - len(found))
        said = await call.run("inspect_logs", (job_id, tenant or "", *place, wanted), shard=shard)
        page = [
            LogPiece(lease, Piece(number, data))
            for lease, number, data in zip(said[::3], said[1::3], said[2::3], strict=True)
        ]
        found += page
        if len(page) < wanted:
            break
        place = (page[-1].lease, page[-1].piece.number)
    return found


async def explain(call: Call, job_id: str) -> Explanation | None:
    """Return all reasons, the most decisive first."""
    said = await call.run("explain", (job_id,), shard=shard_of(job_id, call.shards))
    if not said:
        return None
    now, entry, queue, type_, tenant, behind, lane = said
    record = record_of(job_id, entry, now, await unstarted_of(call, [entry]))
    around = Surroundings(now_ms=now)
    if record.state is JobState.WAITING:
        version = version_in(records.lane_of(lane)[3])
        around = Surroundings(
            now_ms=now,
            queue_hold=_hold(queue),
            type_hold=_hold(type_),
            tenant_hold=_hold(tenant),
            workers=await workers(call),
            behind=min(behind, BEHIND_LIMIT),
            version=version,
            types=await types(call) if version else (),
        )
    elif record.state is JobState.RUNNING:
        around = Surroundings(now_ms=now, types=await types(call), workers=await workers(call))
    return Explanation(record, reasons(record, around))


def _hold(settings: bytes) -> Mark | None:
    return texts.mark_of(json.loads(settings).get("hold")) if settings else None
