"""Procrastinate: claims and finishes one job at a time, by psycopg."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from procrastinate import App, PsycopgConnector
from procrastinate.tasks import Task

from benchmarks.peers.adapter import PAYLOAD, Ran
from benchmarks.peers.facts import Facts

AT_ONCE = 10
"""Jobs of one worker that run at the same time; the default is 1."""

_ARGUMENTS: dict[str, Any] = json.loads(PAYLOAD)

FACTS = Facts(
    name="Procrastinate",
    version=version("procrastinate"),
    settings=f"psycopg {version('psycopg')} with its pool, concurrency={AT_ONCE}, wake-ups by "
    "LISTEN on, finished jobs kept, else defaults",
    promises={
        "delivery": "at least once if the application retries the jobs of lost workers; a handler "
        "that fails is tried again only if its task says so",
        "lost worker": "heartbeat per worker; finding its jobs and retrying them is left to a "
        "periodic task of the application",
        "late finish": "no fence: finishing compares the id and that the job has not ended",
        "commits": "every statement durable",
        "history": "the job with its arguments, one row per change of state",
        "fairness": "priority, then order of submission, and locks by name; no tenants",
        "job's end": "the row is updated, no result is kept",
    },
    waiting="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
    share=0.1,
    due=0.1,
)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Use the ordinary event loop, as `procrastinate worker` does."""
    asyncio.run(main)


async def prepare(url: str) -> None:
    """Do what `procrastinate schema --apply` does."""
    async with _app(url).open_async() as app:
        await app.schema_manager.apply_schema_async()


class _Producer:
    def __init__(self, count: Task[Any, Any, Any], note: Task[Any, Any, Any]) -> None:
        self._count = count
        self._note = note

    async def submit_bulk(self, jobs: int) -> None:
        await self._count.batch_defer_async(*[_ARGUMENTS for _ in range(jobs)])

    async def submit_single(self, number: int = -1) -> None:
        if number < 0:
            await self._count.defer_async(**_ARGUMENTS)
        else:
            await self._note.defer_async(number=number)

    async def submit_due(self, numbers: range, due: float) -> None:
        task = self._note.configure(schedule_at=datetime.fromtimestamp(due, tz=UTC))
        await task.batch_defer_async(*[{"number": number} for number in numbers])


@asynccontextmanager
async def producer(url: str) -> AsyncGenerator[_Producer]:
    """Connect a client."""
    app = _app(url)
    tasks = _declare(app, lambda _number: None)
    async with app.open_async():
        yield _Producer(*tasks)


async def work(url: str, ran: Ran) -> None:
    """Run jobs until the process ends."""
    app = _app(url)
    _declare(app, ran)
    async with app.open_async():
        await app.run_worker_async(concurrency=AT_ONCE)


def _app(url: str) -> App:
    return App(connector=PsycopgConnector(conninfo=url))


def _declare(app: App, ran: Ran) -> tuple[Task[Any, Any, Any], Task[Any, Any, Any]]:
    @app.task(name="count")
    async def count(payload: str) -> None:  # noqa: ARG001 - it travels, that is all
        ran(-1)

    @app.task(name="note")
    async def note(number: int) -> None:
        ran(number)

    return count, note
