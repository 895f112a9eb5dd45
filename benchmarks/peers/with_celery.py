"""Celery: one message at a time, acknowledged before it runs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, cast

from celery import Celery

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

PREFETCH = 64
"""Messages in the hands of a worker; its documentation names 64 for short tasks."""

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="Celery",
    version=version("celery"),
    settings=f"redis-py {version('redis')} with hiredis, 2 workers with the pool `solo`, prefetch "
    f"{PREFETCH}, results ignored, no gossip, mingle, heartbeat; it has no bulk call",
    promises={
        "delivery": "at most once: acknowledged before the task runs, unless acks_late is set; a "
        "task that fails is tried again only if it says so",
        "lost worker": "what it had not begun goes to others after an hour; what it had begun is "
        "lost",
        "late finish": "nobody else has it",
        "commits": "each in memory at once, on disk within a second or two",
        "history": "none with these settings",
        "fairness": "order of submission; no tenants",
        "job's end": "nothing is written",
    },
    waiting="return redis.call('LLEN', 'celery') + redis.call('HLEN', 'unacked')",
    share=0.2,
    bulk=0.2,
    due=0.02,
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
            self._count.apply_async(kwargs=_ARGUMENTS)

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            self._count.apply_async(kwargs=_ARGUMENTS)
        else:
            self._note.apply_async((number,))

    async def submit_due(self, numbers: range, due: float) -> None:
        when = datetime.fromtimestamp(due, tz=UTC)
        for number in numbers:
            self._note.apply_async((number,), eta=when)


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    app = _app(url)
    yield _Producer(*_declare(app, lambda _number: None))
    app.close()


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    app = _app(url)
    _declare(app, ran)
    quietly = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR")
    app.worker_main(["worker", "--pool=solo", f"--hostname=bench-{os.getpid()}@%h", *quietly])


def _app(url: str) -> Any:
    app = cast("Any", Celery("bench", broker=url))
    app.conf.task_ignore_result = True
    app.conf.worker_prefetch_multiplier = PREFETCH
    return app


def _declare(app: Any, ran: Ran) -> tuple[Any, Any]:
    @app.task(name="count")
    def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    @app.task(name="note")
    def note(number: int) -> None:
        ran(number)

    return count, note
