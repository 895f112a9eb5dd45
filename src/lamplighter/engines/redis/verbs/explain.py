"""explain: why is this job not running?"""

from __future__ import annotations

import json

from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.records import lane_of
from lamplighter.engines.redis.shards import shard_of
from lamplighter.engines.redis.verbs.listing import record_of, unstarted_of
from lamplighter.engines.redis.verbs.members import types, workers
from lamplighter.model.job import JobState, Mark, version_in
from lamplighter.port import texts
from lamplighter.port.reasons import Surroundings, reasons
from lamplighter.port.values import BEHIND_LIMIT, Explanation


async def explain(call: Call, job_id: str) -> Explanation | None:
    """Give all reasons, the most decisive first."""
    said = await call.run("explain", (job_id,), shard=shard_of(job_id, call.shards))
    if not said:
        return None
    now, entry, queue, type_, tenant, behind, lane = said
    record = record_of(job_id, entry, now, await unstarted_of(call, [entry]))
    around = Surroundings(now_ms=now)
    if record.state is JobState.WAITING:
        version = version_in(lane_of(lane)[3])
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
