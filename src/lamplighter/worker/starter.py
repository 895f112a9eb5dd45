"""Marks the starts of at-most-once jobs in the store before their handlers are called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.model.errors import StoreError
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import Recording
from lamplighter.service import Service
from lamplighter.worker.run import BATCH, Run

_BACKOFF = Backoff(0.05, 1.0)
_BUSY_PAUSE = 0.25
"""Seconds until a job that somebody else has locked is asked about again."""


class Starter(Service):
    """One record in flight; what wants to start meanwhile forms the next.

    Repeating is safe: marked twice is marked once. A claim that is lost or given back meanwhile is
    taken out by whoever added it, and told no more. A job that somebody else has locked is marked
    later.
    """

    name = "start"

    def __init__(
        self,
        engine: Engine,
        *,
        wanted: Callable[[Run], bool],
        on_marked: Callable[[list[Run], list[Run]], None],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._limit = min(BATCH, engine.capabilities.max_batch)
        self._wanted = wanted
        self._on_marked = on_marked
        self._pending: list[Run] = []
        self._news: asyncio.Future[None] | None = None

    def add(self, runs: Sequence[Run]) -> None:
        """Mark the starts of these runs, and tell which of them are marked and which are lost."""
        self._pending += runs
        self._wake()

    async def step(self) -> float:
        """Mark one batch."""
        if not self._pending:
            await self._wait()
            return 0.0
        batch, self._pending = self._pending[: self._limit], self._pending[self._limit :]
        failures = 0
        while batch := [run for run in batch if self._wanted(run)]:
            try:
                await self._mark(batch)
                break
            except StoreError as error:
                events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=True)
            except Exception:
                self._pending = batch + self._pending
                raise
            if self._stopped.is_set():
                break
            failures += 1
            await runtime.sleep(_BACKOFF.after(failures))
        return 0.0

    async def _mark(self, batch: Sequence[Run]) -> None:
        claims = [run.claim for run in batch]
        answers = await self._engine.jobs.record(
            [Recording(claim.job.id, claim.fence, started=True) for claim in claims]
        )
        pairs = list(zip(batch, answers, strict=True))
        busy = [run for run, answer in pairs if answer.busy]
        if busy:
            asyncio.get_running_loop().call_later(_BUSY_PAUSE, self.add, busy)
        self._on_marked(
            [run for run, answer in pairs if answer.held],
            [run for run, answer in pairs if not answer.held and not answer.busy],
        )

    async def stop(self) -> None:
        """End after the batch in flight."""
        self._stopped.set()
        self._wake()
        await super().stop()

    async def _wait(self) -> None:
        if self._stopped.is_set():
            return
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
