"""arq: polls a sorted set, and takes jobs by an optimistic transaction each."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker, func

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

AT_ONCE = 100
"""Submissions under way at the same time, as it has no bulk call; and jobs of one worker."""
POLL = 0.01
"""Seconds between two looks at the queue; 0.5 by default, which is half a second of latency."""

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="arq",
    version=version("arq"),
    settings=f"redis-py {version('redis')} with hiredis, uvloop, max_jobs={AT_ONCE}, "
    f"poll_delay={POLL:g}, keep_result=0; no bulk call, {AT_ONCE} submissions at the same time",
    promises={
        "delivery": "at least once; a job that fails is tried again only if it asks for that",
        "lost worker": "a mark per job that expires 10 s after its timeout, 310 s by default",
        "late finish": "no fence: finishing removes by id",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none with these settings; else the result for an hour",
        "fairness": "order of submission; no tenants",
        "job's end": "the job is deleted",
    },
    waiting="return redis.call('ZCARD', 'arq:queue')",
    share=0.15,
    bulk=0.5,
    due=0.1,
)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop, as its documentation suggests."""
    uvloop.run(main)


async def prepare(url: str) -> None:
    """It needs nothing."""


class _Producer:
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def submit_bulk(self, jobs: int) -> None:
        for start in range(0, jobs, AT_ONCE):
            some = range(min(AT_ONCE, jobs - start))
            await asyncio.gather(*[self._pool.enqueue_job("count", **_ARGUMENTS) for _ in some])

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            await self._pool.enqueue_job("count", **_ARGUMENTS)
        else:
            await self._pool.enqueue_job("note", number)

    async def submit_due(self, numbers: range, due: float) -> None:
        when = datetime.fromtimestamp(due, tz=UTC)
        for start in range(numbers.start, numbers.stop, AT_ONCE):
            some = range(start, min(start + AT_ONCE, numbers.stop))
            calls = [self._pool.enqueue_job("note", n, _defer_until=when) for n in some]
            await asyncio.gather(*calls)


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    pool = await create_pool(RedisSettings.from_dsn(url))
    yield _Producer(pool)
    await pool.aclose()


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    logging.getLogger("arq").setLevel(logging.WARNING)

    async def count(_ctx: Any, payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    async def note(_ctx: Any, number: int) -> None:
        ran(number)

    worker = Worker(
        [func(count, name="count"), func(note, name="note")],
        redis_settings=RedisSettings.from_dsn(url),
        max_jobs=AT_ONCE,
        poll_delay=POLL,
        keep_result=0,
        handle_signals=False,
    )
    await worker.async_run()
