"""The store of a test for tests without an event loop."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any

from lamplighter.app import App
from lamplighter.handle import Handle
from lamplighter.job import Job
from lamplighter.model.job import JobRecord
from lamplighter.portal import refuse_inside_loop
from lamplighter.testing.clock import Clock
from lamplighter.testing.store import Store, lent
from lamplighter.testing.summary import Summary


@contextlib.contextmanager
def store_sync(app: App, *, start: datetime | None = None) -> Generator[SyncStore]:
    """``store`` for tests without an event loop; handlers run in a thread with a loop."""
    refuse_inside_loop("testing.store(app)` with `async with` instead of `testing.store_sync(app)")
    app.close_sync()
    with lent(app, start) as test_store:
        try:
            yield SyncStore(test_store)
        finally:
            test_store.portal.close()
            app.close_sync()


class SyncStore:
    """``Store`` for tests without an event loop."""

    def __init__(self, test_store: Store) -> None:
        self._store = test_store
        self.app = test_store.app
        # These need no event loop as they are.
        self.submitted = test_store.submitted
        self.assert_submitted = test_store.assert_submitted
        self.assert_not_submitted = test_store.assert_not_submitted

    @property
    def clock(self) -> Clock:
        """The store's clock; jobs fall due and leases end when the test moves it."""
        return self._store.clock

    def drain(self, queue: str | None = None, *, limit: int | None = None) -> Summary:
        """Run what is due now, and what that submits, until nothing is due."""
        return self._store.portal.run(
            lambda: self._store.drain(queue, limit=limit), instead="t.drain()"
        )

    def run_until_idle(self, max_time: float | timedelta | None = None) -> Summary:
        """Run what is due, move the clock to what is due next, until nothing waits."""
        return self._store.portal.run(
            lambda: self._store.run_until_idle(max_time), instead="t.run_until_idle()"
        )

    def fire(self) -> int:
        """Make jobs of what schedules say is due now; gives how many."""
        return self._store.portal.run(self._store.fire, instead="t.fire()")

    def crash(
        self, job: Job[..., Any] | str | None = None, *, after_run: bool = False
    ) -> Handle[object]:
        """Have a worker take the next job that is due and vanish."""
        return self._store.portal.run(
            lambda: self._store.crash(job, after_run=after_run), instead="t.crash()"
        )

    def rescue(self) -> list[JobRecord]:
        """Release the jobs whose lease has ended; return them as they are afterwards."""
        return self._store.portal.run(self._store.rescue, instead="t.rescue()")

    def __repr__(self) -> str:
        return repr(self._store)
