"""join, beat, leave, lead: who is alive."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.call import Call
from lamplighter.port import texts
from lamplighter.port.values import Beat, NewWorker

_JOIN = "%s, %s, %s::integer, %s, %s::integer, %s::integer, %s, %s, %s, %s, %s"


async def join(call: Call, worker: NewWorker) -> Beat:
    """Enter a worker and publish its types."""
    types = worker.types
    ((version, workers),) = await call.rows(
        f"SELECT * FROM {call.function('join')}({_JOIN})",
        (
            worker.id,
            texts.clean(worker.host),
            worker.pid,
            json.dumps(worker.queues),
            worker.slots,
            worker.version_slot,
            [known.name for known in types],
            [known.hash for known in types],
            [known.queue for known in types],
            [texts.clean(known.schema) for known in types],
            [json.dumps(dict(known.options)) for known in types],
        ),
    )
    return Beat(known=True, settings_version=version, workers=workers)


async def beat(call: Call, worker: str, running: int, unstarted: Sequence[str]) -> Beat:
    """Note a sign of life."""
    ((known, version, workers),) = await call.rows(
        f"SELECT * FROM {call.function('beat')}(%s, %s::integer, %s)",
        (worker, running, ids.uuids(unstarted)),
        urgent=True,
    )
    return Beat(known=known, settings_version=version, workers=workers)


async def leave(call: Call, worker: str) -> None:
    """Take a worker out."""
    await call.rows(f"SELECT {call.function('leave')}(%s)", (worker,))


async def lead(call: Call, role: str, holder: str, term_ms: int) -> bool:
    """Take or keep a role."""
    ((held,),) = await call.rows(
        f"SELECT {call.function('lead')}(%s, %s, %s::bigint)", (role, holder, term_ms)
    )
    return held
