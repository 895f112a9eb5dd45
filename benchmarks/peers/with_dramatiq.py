"""Dramatiq: threads that fetch and acknowledge by one script, in batches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

THREADS = 8
"""Of one process, as by default."""

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="Dramatiq",
    version=version("dramatiq"),
    settings=f"redis-py {version('redis')} with hiredis, 2 processes of {THREADS} threads, the "
    "default middleware, no results; it has no bulk call",
    promises={
        "delivery": "at least once; failures are retried with growing delays, then kept as dead "
        "messages for 7 days",
        "lost worker": "heartbeat per worker; after 60 s without one its messages go back",
        "late finish": "refused once the message was given back: each worker acknowledges from a "
        "set of its own",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none",
        "fairness": "order of submission in a queue; priorities only inside a worker; no tenants",
        "job's end": "the message is deleted",
    },
    # A message is there until it is acknowledged.
    waiting="return redis.call('HLEN', 'dramatiq:default.msgs') "
    "+ redis.call('HLEN', 'dramatiq:default.DQ.msgs')",
    share=0.5,
    bulk=0.5,
    due=0.3,
)


def run(main: Coroutine[Any, Any, None]) -> None:
    """It has no event loop."""
    asyncio.run(main)


async def prepare(url: str) -> None:
    """It needs nothing."""


class _Producer:
    def __init__(self, count: Any, note: Any) -> None:
        self._count = count
        self._note = note

    async def submit_bulk(self, jobs: int) -> None:
        for _ in range(jobs):
            self._count.send(**_ARGUMENTS)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            self._count.send(**_ARGUMENTS)
        else:
            self._note.send(number)

    async def submit_due(self, numbers: range, due: float) -> None:
        for number in numbers:
            delay = int((due - time.time()) * 1000)
            self._note.send_with_options(args=(number,), delay=max(0, delay))


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    broker = RedisBroker(url=url)
    yield _Producer(*_declare(broker, lambda _number: None))
    broker.close()


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    broker = RedisBroker(url=url)
    _declare(broker, ran)
    broker.emit_after("process_boot")
    worker = dramatiq.Worker(broker, worker_threads=THREADS)
    worker.start()
    await asyncio.Event().wait()


def _declare(broker: RedisBroker, ran: Ran) -> tuple[Any, Any]:
    def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    def note(number: int) -> None:
        ran(number)

    dramatiq.set_broker(broker)
    actor: Any = dramatiq.actor
    return actor(count, broker=broker), actor(note, broker=broker)
