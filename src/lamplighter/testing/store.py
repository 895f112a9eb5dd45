"""A store for the time of one test."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypeVar

from lamplighter.app import App
from lamplighter.handle import Handle
from lamplighter.job import Job
from lamplighter.model.errors import InvalidOption
from lamplighter.model.job import JobRecord
from lamplighter.model.names import shown
from lamplighter.options import Priority, positive_seconds
from lamplighter.portal import Portal
from lamplighter.testing import submissions
from lamplighter.testing.clock import Clock, installed
from lamplighter.testing.errors import NothingDue
from lamplighter.testing.fleet import Fleet
from lamplighter.testing.submissions import Submission
from lamplighter.testing.summary import Summary

T = TypeVar("T")


@contextlib.asynccontextmanager
async def store(app: App, *, start: datetime | None = None) -> AsyncGenerator[Store]:
    """Lend the app a new, empty store and a clock that stands still; take both away at the end.

    The store is a temporary SQLite file. The app's own store is never opened, and closed if it
    was open; it is opened again when the app is next used. ``start`` sets the clock.
    """
    await app.close()
    with lent(app, start) as test_store:
        try:
            yield test_store
        finally:
            await asyncio.to_thread(test_store.portal.close)
            await app.close()


@contextlib.contextmanager
def lent(app: App, start: datetime | None) -> Generator[Store]:
    """Point a closed app to a temporary file, and this process to a clock that stands still."""
    own = app.settings
    with (
        tempfile.TemporaryDirectory(prefix="lamplighter-test-") as folder,
        installed(start) as clock,
    ):
        url = f"sqlite:///{folder}/jobs.db"
        app.configure(dataclasses.replace(own, url=url, speed=1.0))
        try:
            yield Store(app, clock)
        finally:
            app.configure(own)


class Store:
    """What a test does with the jobs of an app: run them, let time pass, look at them."""

    def __init__(self, app: App, clock: Clock) -> None:
        self.app = app
        self.clock = clock
        """The store's clock; jobs fall due and leases end when the test moves it."""
        self.portal = Portal(app.close)
        """Another loop on the same store, so that looking needs no ``await``."""

    # ── run ──────────────────────────────────────────────────────────────────────────────────

    async def drain(self, queue: str | None = None, *, limit: int | None = None) -> Summary:
        """Run what is due now, and what that submits, until nothing is due; time stands still.

        One job after the other, in the order in which a worker would get them. ``queue`` runs
        only that one, ``limit`` only so many attempts.
        """
        if limit is not None and limit < 1:
            raise InvalidOption(
                f"limit is {shown(limit)}", hint="give 1 or more, or leave it out", value=limit
            )
        return await (await self._fleet()).drain(queue, limit)

    async def run_until_idle(self, max_time: float | timedelta | None = None) -> Summary:
        """Run what is due, move the clock to what is due next, and so on until nothing waits.

        Leases end too, and the jobs of vanished workers are rescued. Schedules are fired when the
        clock reaches their times. The clock stops after ``max_time`` (seconds, or a timedelta) at
        the latest; without it the clock does not move for schedules alone, which have no end.
        """
        seconds = None if max_time is None else positive_seconds("max_time", max_time)
        return await (await self._fleet()).run_until_idle(seconds)

    async def fire(self) -> int:
        """Make jobs of what schedules say is due now; gives how many. ``drain`` runs them.

        Schedules that ``@app.schedule`` declares are put first, so that they count from the time
        of the first call; those that were put before are not changed.
        """
        await self.app.schedules.put_declared(by="test")
        fired, _ = await (await self._fleet()).fire()
        return fired

    async def crash(
        self, job: Job[..., Any] | str | None = None, *, after_run: bool = False
    ) -> Handle[object]:
        """Have a worker take the next job that is due, of this type or any, and vanish.

        It vanishes before it calls the handler, or with ``after_run`` when the handler has ended,
        before it can write that down. The job runs until its lease ends: see ``rescue``.
        """
        fleet = await self._fleet()
        claimed = await fleet.claim(type=None if job is None else _name(job), worker="vanished")
        if not claimed.claims:
            raise self._nothing_due(await self._submitted(job))
        claim = claimed.claims[0]
        if after_run:
            await fleet.perform(claim)
        return self.app.handle(claim.job.id)

    async def rescue(self) -> list[JobRecord]:
        """Release the jobs whose lease has ended; return them as they are afterwards.

        A lease ends when the clock was advanced by ``app.settings.lease``.
        """
        return await (await self._fleet()).rescue()

    # ── look ─────────────────────────────────────────────────────────────────────────────────

    def submitted(self, job: Job[..., Any] | str | None = None) -> list[Submission]:
        """Return the jobs in the store, of one type or all, in the order they were submitted."""
        return self._wait_for(lambda: self._submitted(job))

    def assert_submitted(
        self,
        job: Job[..., Any] | str,
        /,
        *,
        count: int | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        priority: Priority | None = None,
        delay: float | timedelta | None = None,
        run_at: datetime | None = None,
        tags: Collection[str] | None = None,
        arguments: Mapping[str, object] | None = None,
        **named: object,
    ) -> list[Submission]:
        """Raise NotSubmitted, and list what was submitted, unless such a job is in the store.

        Arguments of the job are given by name; those left out do not matter. ``count`` says how
        many there must be, otherwise one or more. ``arguments`` is for names that are options too.
        """
        options = {
            "queue": queue,
            "tenant": tenant,
            "priority": priority,
            "delay": delay,
            "run_at": run_at,
            "tags": tags,
        }
        wanted = submissions.expected(job, named, arguments, options, count)
        return submissions.check_submitted(wanted, count, self.submitted())

    def assert_not_submitted(
        self,
        job: Job[..., Any] | str,
        /,
        *,
        queue: str | None = None,
        tenant: str | None = None,
        arguments: Mapping[str, object] | None = None,
        **named: object,
    ) -> None:
        """Raise StillSubmitted if such a job is in the store."""
        options = {"queue": queue, "tenant": tenant}
        wanted = submissions.expected(job, named, arguments, options)
        submissions.check_not_submitted(wanted, self.submitted())

    # ── how ──────────────────────────────────────────────────────────────────────────────────

    async def _fleet(self) -> Fleet:
        return Fleet(self.app, await self.app.engine(), self.clock)

    async def _submitted(self, job: Job[..., Any] | str | None = None) -> list[Submission]:
        records = await (await self._fleet()).records(None if job is None else _name(job))
        return [submissions.submission(record, self.app.registry) for record in records]

    def _wait_for(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for a read; an assertion that one must not forget to await is a better one.

        A thread of its own may wait where this one, which perhaps runs a loop, may not.
        """
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(self.portal.run, work, instead="").result()

    @staticmethod
    def _nothing_due(waiting: list[Submission]) -> NothingDue:
        return NothingDue(
            f"no job is due that a worker could take\n\n{submissions.listed(waiting, 'submitted')}",
            hint="submit one first; `t.clock.advance(…)` makes delayed jobs due",
            value=[each.id for each in waiting],
        )

    def __repr__(self) -> str:
        return f"<Store of a test at {self.clock.now().isoformat()}>"


def _name(job: Job[..., Any] | str) -> str:
    return job if isinstance(job, str) else job.name
