"""Stores to look into: a schema of its own on a server of its own, watched at two sizes."""

import asyncio
import os
from dataclasses import dataclass
from urllib.parse import quote

from lamplighter.connect import connect
from tests.servers.postgres import Server
from tests.unit.postgres.plans.acts import ACTS
from tests.unit.postgres.plans.caller import Caller
from tests.unit.postgres.plans.filling import fill, prepare
from tests.unit.postgres.plans.looks import Plans

FULL = os.environ.get("LAMPLIGHTER_FULL") == "1"
SMALL, BIG = (10_000, 100_000) if FULL else (1_000, 10_000)

QUIET = {"autovacuum": "off", "shared_buffers": "128MB"}
"""Nobody but the test decides when the server learns what is in the tables."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What every verb did in a small store, and in the same store ten times as big."""

    small: dict[str, Plans]
    big: dict[str, Plans]
    running: int


def new_store(server: Server, schema: str) -> Caller:
    """Let the engine make a store, and give a session that looks into it."""
    asyncio.run(_make(f"{server.url()}?durability=none&schema={quote(schema)}"))
    return Caller(server.url(), schema)


def look_twice(server: Server, statistics: str) -> Seen:
    """Watch all verbs at two sizes, with statistics that are `fresh`, `stale` or `none`."""
    call = new_store(server, statistics)
    try:
        asyncio.run(prepare(call))
        if statistics == "stale":
            # Of a time when nothing ran and all was one tenant's; the plans of then are kept, too.
            call.run("ANALYZE")
            asyncio.run(_look(call))
            call.run("ANALYZE")
        seen: list[dict[str, Plans]] = []
        for first, last in ((1, SMALL), (SMALL + 1, BIG)):
            asyncio.run(fill(call, first, last))
            if statistics == "fresh":
                call.run("ANALYZE")
            seen.append(asyncio.run(_look(call)))
        running = call.number("SELECT count(*) FROM job WHERE state = 'running'")
        return Seen(seen[0], seen[1], running)
    finally:
        call.close()


async def _look(call: Caller) -> dict[str, Plans]:
    """Watch each verb; the first time it only gets its plans ready."""
    found: dict[str, Plans] = {}
    for _ in range(2):
        for name, ready in ACTS.items():
            act = await ready(call)
            _, found[name] = await call.watch(act)
    return found


async def _make(url: str) -> None:
    engine = connect(url)
    await engine.open()
    await engine.close()
