"""SAQ: one blocking move per job, and a script to enqueue."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import uvloop
from saq import Queue, Worker

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

AT_ONCE = 100
"""Submissions under way at the same time: it has no bulk call."""
CONCURRENCY = 20
"""Jobs of one worker at the same time, and its operations on the server; the first is 10 by
default."""

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="SAQ",
    version=version("saq"),
    settings=f"redis-py {version('redis')} with hiredis, uvloop, concurrency={CONCURRENCY}, ttl=-1 "
    f"(nothing is kept of a finished job), timers every second; no bulk call, {AT_ONCE} "
    "submissions at the same time",
    promises={
        "delivery": "at least once if a job may be retried; a job that fails is tried again only "
        "if it says so",
        "lost worker": "a job that outlives its timeout, 10 s by default, is swept within a minute "
        "and retried if it may be",
        "late finish": "no fence: finishing removes by id",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none with these settings; else the job with its result for 10 minutes",
        "fairness": "order of submission; no tenants",
        "job's end": "the job is deleted, who waits for it is told",
    },
    waiting="return redis.call('ZCARD', 'saq:default:incomplete')",
    share=0.3,
    bulk=0.5,
    due=0.3,
)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop, as its documentation suggests."""
    uvloop.run(main)


async def prepare(url: str) -> None:
    """It needs nothing."""


class _Producer:
    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def submit_bulk(self, jobs: int) -> None:
        for start in range(0, jobs, AT_ONCE):
            some = range(min(AT_ONCE, jobs - start))
            calls = [self._queue.enqueue("count", ttl=-1, **_ARGUMENTS) for _ in some]
            await asyncio.gather(*calls)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            await self._queue.enqueue("count", ttl=-1, **_ARGUMENTS)
        else:
            await self._queue.enqueue("note", ttl=-1, number=number)

    async def submit_due(self, numbers: range, due: float) -> None:
        when = int(due)
        for start in range(numbers.start, numbers.stop, AT_ONCE):
            some = range(start, min(start + AT_ONCE, numbers.stop))
            calls = [
                self._queue.enqueue("note", ttl=-1, scheduled=when, number=number)
                for number in some
            ]
            await asyncio.gather(*calls)


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    queue = Queue.from_url(url)
    await queue.connect()
    yield _Producer(queue)
    await queue.disconnect()


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    logging.getLogger("saq").setLevel(logging.WARNING)

    async def count(_ctx: Any, *, payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    async def note(_ctx: Any, *, number: int) -> None:
        ran(number)

    queue = Queue.from_url(url)
    functions: Any = [("count", count), ("note", note)]
    worker: Any = Worker(
        queue, functions, concurrency=CONCURRENCY, timers={"schedule": 1, "sweep": 60}
    )
    await worker.start()
