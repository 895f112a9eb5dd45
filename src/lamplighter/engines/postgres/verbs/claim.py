"""claim: hand out due jobs, fairly."""

from __future__ import annotations

import json
from typing import Any

from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.call import Call, Row
from lamplighter.engines.postgres.records import LEVELS
from lamplighter.model.job import NO_EXTRAS, Claim, Delivery, Fence, Job
from lamplighter.port.texts import extras_of
from lamplighter.port.values import Claimed, ClaimRequest

_AT_LEAST_ONCE = Delivery.AT_LEAST_ONCE


async def claim(call: Call, request: ClaimRequest) -> Claimed:
    """Ask for jobs; the first row says when to come again and names the lanes of the others."""
    first, *rows = await call.rows(
        f"SELECT * FROM {call.function('claim')}(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            request.nonce,
            request.worker,
            [queue for queue, _ in request.queues],
            [quota for _, quota in request.queues],
            list(request.types),
            list(request.requirements),
            request.limit,
            request.lease_ms,
            request.max_bytes,
        ),
    )
    if not rows:
        return Claimed([], first[0])
    lanes = {int(lane): tuple(parts) for lane, parts in json.loads(first[1]).items()}
    claims = [
        Claim(
            job=_job(row, job_id, lanes[row[4]]),
            fence=Fence(row[14], request.nonce),
            worker=request.worker,
            handout=row[19],
        )
        for row, job_id in zip(rows, ids.texts([row[3] for row in rows]), strict=True)
    ]
    return Claimed(claims, first[0])


def _job(row: Row, job_id: str, lane: tuple[Any, ...]) -> Job:
    queue, level, type_ = lane
    return Job(
        id=job_id,
        type=type_,
        args=row[8],
        queue=queue,
        level=LEVELS[level],
        tenant=row[5],
        due_at_ms=row[6],
        created_at_ms=row[7],
        delivery=_AT_LEAST_ONCE if row[10] is None else Delivery(row[10]),
        extras=NO_EXTRAS if row[9] is None else extras_of(row[9]),
        cost=row[11],
        schedule=row[12],
        generation=row[13],
        attempt=row[15],
        crashes=row[16],
        losses=row[17],
        suspect=row[18],
    )
