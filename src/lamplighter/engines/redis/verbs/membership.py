"""join, beat, leave, lead: who is alive. All of it lives in shard 0."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lamplighter.engines.redis.call import Argument, Call
from lamplighter.port import texts
from lamplighter.port.health import DEAD_MS
from lamplighter.port.values import Beat, NewWorker, TypeInfo


async def join(call: Call, worker: NewWorker) -> Beat:
    """Enter a worker and publish its types."""
    info = {
        "host": texts.clean(worker.host),
        "pid": worker.pid,
        "queues": worker.queues,
        "slots": worker.slots,
        "version_slot": worker.version_slot,
    }
    types = [part for known in worker.types for part in _version(known)]
    version, workers = await call.run(
        "join", (texts.clean(worker.id), json.dumps(info), DEAD_MS, *types)
    )
    return Beat(known=True, settings_version=version, workers=workers)


def _version(known: TypeInfo) -> tuple[Argument, Argument]:
    """Give the name of a version of a type, and what is told about it."""
    told = {
        "queue": known.queue,
        "schema": texts.clean(known.schema),
        "options": dict(known.options),
    }
    return f"{known.name}\0{known.hash}", json.dumps(told)


async def beat(call: Call, worker: str, running: int, unstarted: Sequence[str]) -> Beat:
    """Note a sign of life."""
    known, version, workers, quiet = await call.run(
        "beat",
        (texts.clean(worker), running, DEAD_MS, int(call.shards == 1), " ".join(unstarted)),
        urgent=True,
    )
    return Beat(known=known == 1, settings_version=version, workers=workers, overdue=quiet != 1)


async def leave(call: Call, worker: str) -> None:
    """Take a worker out."""
    await call.run("leave", (texts.clean(worker),))


async def lead(call: Call, role: str, holder: str, term_ms: int) -> bool:
    """Take or keep a role."""
    return await call.run("lead", (role, texts.clean(holder), term_ms)) == 1
