"""taskiq: a list, and a blocking pop by each process; what is popped is nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import uvloop
from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

AT_ONCE = 100
"""Submissions under way at the same time where there is no bulk call; as many tasks run at once,
which is its default."""

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="taskiq",
    version=version("taskiq"),
    settings=f"taskiq-redis {version('taskiq-redis')}, redis-py {version('redis')} with hiredis, "
    f"uvloop, ListQueueBroker (its cheapest), max_async_tasks={AT_ONCE}, no socket_timeout, no "
    f"results; no bulk call, {AT_ONCE} submissions at the same time",
    promises={
        "delivery": "at most once with this broker: a task that is popped is nowhere else; a task "
        "that fails is tried again only by a middleware that is not on",
        "lost worker": "its tasks are lost",
        "late finish": "nobody else has it",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none",
        "fairness": "order of submission; no tenants",
        "job's end": "nothing is written",
    },
    waiting="return redis.call('LLEN', 'taskiq')",
    share=0.5,
    bulk=0.3,
    # Only by a scheduler, a process of its own that must not run twice.
    due=0,
)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Use uvloop, as `taskiq worker` does where it is installed."""
    uvloop.run(main)


async def prepare(url: str) -> None:
    """It needs nothing."""


class _Producer:
    def __init__(self, count: Any, note: Any) -> None:
        self._count = count
        self._note = note

    async def submit_bulk(self, jobs: int) -> None:
        for start in range(0, jobs, AT_ONCE):
            calls = [self._count.kiq(**_ARGUMENTS) for _ in range(min(AT_ONCE, jobs - start))]
            await asyncio.gather(*calls)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            await self._count.kiq(**_ARGUMENTS)
        else:
            await self._note.kiq(number)

    async def submit_due(self, numbers: range, due: float) -> None:
        raise NotImplementedError


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    broker = _broker(url)
    tasks = _declare(broker, lambda _number: None)
    await broker.startup()
    yield _Producer(*tasks)
    await broker.shutdown()


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    broker = _broker(url)
    broker.is_worker_process = True
    _declare(broker, ran)
    await run_receiver_task(broker, max_async_tasks=AT_ONCE, run_startup=True)


def _broker(url: str) -> ListQueueBroker:
    # By default its driver gives up a blocking pop after 5 s, also while we keep it from going on,
    # and what the server has popped for it is lost.
    return ListQueueBroker(url, socket_timeout=None)


def _declare(broker: Any, ran: Ran) -> tuple[Any, Any]:
    @broker.task(task_name="count")
    async def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    @broker.task(task_name="note")
    async def note(number: int) -> None:
        ran(number)

    return count, note
