"""RQ: some dozens of commands a job; here without a process for each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="RQ",
    version=version("rq"),
    settings=f"redis-py {version('redis')} with hiredis, 2 workers of the kind SimpleWorker, which "
    "starts no process for a job, result_ttl=0, enqueue_many by 1,000, with its scheduler",
    promises={
        "delivery": "at most once unless a job may be retried; one that failed is kept for a year",
        "lost worker": "heartbeat per job; looked for every 10 minutes and failed, or retried if "
        "it may be",
        "late finish": "no fence: finishing writes by id",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none with these settings; else the job with its result for 500 s",
        "fairness": "order of submission; no tenants",
        "job's end": "the job is deleted",
    },
    waiting="return redis.call('LLEN', 'rq:queue:default') + redis.call('ZCARD', 'rq:wip:default') "
    "+ redis.call('ZCARD', 'rq:scheduled:default')",
    share=0.04,
    bulk=0.3,
    due=0.02,
)

_ran: list[Ran] = []


def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
    """Count; a job of RQ is found by its name."""
    _ran[0](-1)


def note(number: int) -> None:
    """Note the start; see `count`."""
    _ran[0](number)


def run(main: Coroutine[Any, Any, None]) -> None:
    """It has no event loop."""
    asyncio.run(main)


async def prepare(url: str) -> None:
    """It needs nothing."""


class _Producer:
    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def submit_bulk(self, jobs: int) -> None:
        prepare_data: Any = Queue.prepare_data
        calls = [prepare_data(count, kwargs=_ARGUMENTS, result_ttl=0) for _ in range(jobs)]
        self._queue.enqueue_many(calls)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            self._queue.enqueue(count, kwargs=_ARGUMENTS, result_ttl=0)
        else:
            self._queue.enqueue(note, number, result_ttl=0)

    async def submit_due(self, numbers: range, due: float) -> None:
        when = datetime.fromtimestamp(due, tz=UTC)
        for number in numbers:
            self._queue.enqueue_at(when, note, number, result_ttl=0)


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    yield _Producer(Queue(connection=Redis.from_url(url)))


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    _ran.append(ran)
    connection = Redis.from_url(url)
    worker: Any = SimpleWorker([Queue(connection=connection)], connection=connection)
    worker.work(logging_level="ERROR", with_scheduler=True)
