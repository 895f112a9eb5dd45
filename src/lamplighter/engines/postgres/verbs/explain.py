"""explain: why is this job not running?"""

from __future__ import annotations

from dataclasses import replace

from lamplighter.engines.postgres import ids, records
from lamplighter.engines.postgres.call import Call, Row
from lamplighter.engines.postgres.verbs.inspect import NOW, clock, types, worker_of
from lamplighter.model.job import JobState, version_in
from lamplighter.port import texts
from lamplighter.port.reasons import Surroundings, reasons
from lamplighter.port.values import BEHIND_LIMIT, Explanation

_AROUND = NOW + 1


async def explain(call: Call, job_id: str) -> Explanation | None:
    """Return all reasons, the most decisive first."""
    rows = await call.rows(
        f"SELECT seen.*, clock.now, around.* FROM {clock(call)} "
        f"CROSS JOIN {call.function('read_jobs')}(%s) AS seen "
        f"CROSS JOIN LATERAL {call.function('read_around')}("
        "seen.queue, seen.type, seen.tenant, seen.lane, seen.due, seen.seq, %s) AS around",
        (ids.uuids([job_id]), BEHIND_LIMIT),
    )
    if not rows:
        return None
    row = rows[0]
    record = records.record_of(row, row[NOW])
    around = Surroundings(now_ms=row[NOW])
    if record.state is JobState.WAITING:
        around = _around(row)
        if around.version:
            around = replace(around, types=await types(call))
    elif record.state is JobState.RUNNING:
        around = replace(_around(row), types=await types(call))
    return Explanation(record, reasons(record, around))


def _around(row: Row) -> Surroundings:
    queue_hold, type_hold, tenant_hold, behind, workers, requirement = row[_AROUND:]
    return Surroundings(
        now_ms=row[NOW],
        queue_hold=texts.mark_of(queue_hold),
        type_hold=texts.mark_of(type_hold),
        tenant_hold=texts.mark_of(tenant_hold),
        workers=[worker_of(worker, row[NOW]) for worker in workers or ()],
        behind=behind,
        version=version_in(requirement),
    )
