"""PgQueuer: claims and finishes in batches, by asyncpg."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from importlib.metadata import version
from typing import Any, cast

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.peers.adapter import BATCH_SIZE, PAYLOAD, Ran
from benchmarks.peers.facts import Facts

CLAIMED_AT_ONCE = int(os.environ.get(BATCH_SIZE, "100"))
"""Its default is 10, and its documentation goes up to 25. More is cheaper, but as many are then in
the hands of each process: with 100 a job costs less than half of what it costs with 10."""

FACTS = Facts(
    name="pgqueuer",
    version=version("pgqueuer"),
    settings=f"asyncpg {version('asyncpg')} on one connection per process, uvloop, "
    f"batch_size={CLAIMED_AT_ONCE}, durability=durable (all tables logged), else defaults",
    promises={
        "delivery": "at least once while its worker lives or its heartbeat ends; a handler that "
        "fails is not tried again unless it asks for that",
        "lost worker": "heartbeat per job; after 30 s without one the job is picked again",
        "late finish": "no fence: finishing deletes by id, also for a worker whose job was picked "
        "again by another",
        "commits": "every statement durable; finished jobs are written up to 0.1 s later",
        "history": "one row per change of state (queued, picked, successful), without arguments",
        "fairness": "priority, then order of submission; no tenants",
        "job's end": "the row is deleted, no result is kept",
    },
    waiting="SELECT count(*) FROM pgqueuer",
)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop, as `pgq` does."""
    uvloop.run(main)


async def prepare(url: str) -> None:
    """Do what `pgq install` does."""
    connection = await _connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


class _Producer:
    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def submit_bulk(self, jobs: int) -> None:
        payload = PAYLOAD.encode()
        await self._queries.enqueue(["count"] * jobs, [payload for _ in range(jobs)], [0] * jobs)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            await self._queries.enqueue("count", PAYLOAD.encode())
        else:
            await self._queries.enqueue("note", str(number).encode())

    async def submit_due(self, numbers: range, due: float) -> None:
        count, left = len(numbers), timedelta(seconds=due - time.time())
        payloads: list[bytes | None] = [str(number).encode() for number in numbers]
        await self._queries.enqueue(["note"] * count, payloads, [0] * count, [left] * count)


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    connection = await _connect(url)
    try:
        yield _Producer(Queries(AsyncpgDriver(connection)))
    finally:
        await connection.close()


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    program = PgQueuer(AsyncpgDriver(await _connect(url)))

    @program.entrypoint("count")
    async def count(job: Job) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    @program.entrypoint("note")
    async def note(job: Job) -> None:
        ran(int(job.payload or b""))

    await program.run(batch_size=CLAIMED_AT_ONCE)


async def _connect(url: str) -> Any:
    # It has no types.
    return cast("Any", await asyncpg.connect(url))  # pyright: ignore[reportUnknownMemberType]
