"""Huey: a list, and a blocking pop by each worker; what is popped is nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from huey import RedisHuey

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="Huey",
    version=version("huey"),
    settings=f"redis-py {version('redis')} with hiredis, 2 consumers of one worker thread each, "
    "blocking=True, results=False, no periodic tasks; it has no bulk call",
    promises={
        "delivery": "at most once: a task that is popped is nowhere else; a task that fails is "
        "tried again only if it says so",
        "lost worker": "its task is lost",
        "late finish": "nobody else has it",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none",
        "fairness": "order of submission; no tenants",
        "job's end": "nothing is written",
    },
    waiting="return redis.call('LLEN', 'huey.redis.bench') "
    "+ redis.call('ZCARD', 'huey.schedule.bench')",
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
            self._count(**_ARGUMENTS)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            self._count(**_ARGUMENTS)
        else:
            self._note(number)

    async def submit_due(self, numbers: range, due: float) -> None:
        when = datetime.fromtimestamp(due, tz=UTC)
        for number in numbers:
            self._note.schedule((number,), eta=when)


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    yield _Producer(*_declare(_huey(url), lambda _number: None))


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    huey = _huey(url)
    _declare(huey, ran)
    huey.create_consumer(workers=1, periodic=False).run()


def _huey(url: str) -> Any:
    return RedisHuey("bench", url=url, results=False, blocking=True)


def _declare(huey: Any, ran: Ran) -> tuple[Any, Any]:
    @huey.task(name="count")
    def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    @huey.task(name="note")
    def note(number: int) -> None:
        ran(number)

    return count, note
