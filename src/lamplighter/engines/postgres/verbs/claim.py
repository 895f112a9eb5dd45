"""claim: hand out due jobs, fairly."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

from lamplighter.engines.postgres import arrays, ids
from lamplighter.engines.postgres.call import Call, Row
from lamplighter.engines.postgres.records import LEVELS
from lamplighter.model.job import NO_EXTRAS, Claim, Delivery, Fence, Job
from lamplighter.port.texts import extras_of
from lamplighter.port.values import Claimed, ClaimRequest

_AT_LEAST_ONCE = Delivery.AT_LEAST_ONCE
_HANDOUT = itemgetter(18)
_PARAMETERS = "%s, %s, %s, %s, %s, %s, %s::integer, %s::bigint, %s::bigint"


async def claim(call: Call, request: ClaimRequest) -> Claimed:
    """Ask for jobs; the first row says when to come again and names the lanes of the others."""
    first, *rows = await call.rows(
        f"SELECT * FROM {call.function('claim')}({_PARAMETERS})",
        (
            request.nonce,
            request.worker,
            arrays.texts([queue for queue, _ in request.queues]),
            arrays.numbers(quota for _, quota in request.queues),
            arrays.texts(request.types),
            arrays.texts(request.requirements),
            request.limit,
            request.lease_ms,
            request.max_bytes,
        ),
    )
    if not rows:
        return Claimed([], first[0])
    lanes = {int(lane): tuple(parts) for lane, parts in json.loads(first[1]).items()}
    if len(request.queues) == 1:
        rows.sort(key=_HANDOUT)
    else:
        places = {queue: place for place, (queue, _) in enumerate(request.queues)}
        rows.sort(key=lambda row: (places[lanes[row[3]][0]], row[18]))
    claims = [
        Claim(
            job=_job(row, job_id, lanes[row[3]]),
            fence=Fence(row[13], request.nonce),
            worker=request.worker,
            handout=row[18],
        )
        for row, job_id in zip(rows, ids.texts([row[2] for row in rows]), strict=True)
    ]
    return Claimed(claims, first[0])


def _job(row: Row, job_id: str, lane: tuple[Any, ...]) -> Job:
    queue, level, type_ = lane
    return Job(
        id=job_id,
        type=type_,
        args=row[7],
        queue=queue,
        level=LEVELS[level],
        tenant=row[4],
        due_at_ms=row[5],
        created_at_ms=row[6],
        delivery=_AT_LEAST_ONCE if row[9] is None else Delivery(row[9]),
        extras=NO_EXTRAS if row[8] is None else extras_of(row[8]),
        cost=row[10],
        schedule=row[11],
        generation=row[12],
        attempt=row[14],
        crashes=row[15],
        losses=row[16],
        suspect=row[17],
    )
