"""claim: hand out due jobs, fairly."""

from __future__ import annotations

import json
from operator import itemgetter

from lamplighter.engines.postgres import arrays, ids, records
from lamplighter.engines.postgres.call import Call
from lamplighter.model.job import Claim, Fence
from lamplighter.port.values import Claimed, ClaimRequest

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
            job=records.claimed_job(row, job_id, lanes[row[3]]),
            fence=Fence(row[13], request.nonce),
            worker=request.worker,
            handout=row[18],
        )
        for row, job_id in zip(rows, ids.texts([row[2] for row in rows]), strict=True)
    ]
    return Claimed(claims, first[0])
