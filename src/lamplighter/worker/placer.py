"""Finds out where a job waits whose arguments do not fit this worker's version of its type."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lamplighter import runtime
from lamplighter.model.errors import StoreError
from lamplighter.model.job import ErrorInfo
from lamplighter.model.outcome import Outcome
from lamplighter.model.versions import Version, refused
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.versions import live_versions
from lamplighter.service import Service
from lamplighter.worker.run import Run

BATCH = 100
WARN_AGAIN = 60.0
"""Seconds between two warnings about one type."""
_PAUSE = 0.25


class Placer(Service):
    """Looks up the live versions for misfits, decides for each, and hands it to the settler."""

    name = "versions"

    def __init__(
        self,
        engine: Engine,
        *,
        on_placed: Callable[[Run, Outcome], None],
        on_forsaken: Callable[[list[int]], None],
    ) -> None:
        super().__init__()
        self._engine = engine
        self._on_placed = on_placed
        self._on_forsaken = on_forsaken
        self._waiting: dict[int, tuple[Run, ErrorInfo]] = {}
        self._warned: dict[str, float] = {}
        """When it was last told of a type."""
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, run: Run, error: ErrorInfo) -> None:
        """Take in a run whose arguments did not fit."""
        self._waiting[run.number] = (run, error)
        self._empty.clear()
        self._news.set()

    def lose(self, numbers: list[int]) -> None:
        """Forget claims that belong to somebody else."""
        mine = [number for number in numbers if self._waiting.pop(number, None) is not None]
        if mine:
            self._on_forsaken(mine)
            self._look_empty()

    async def emptied(self) -> None:
        """Wait until everything that came in is decided."""
        await self._empty.wait()

    async def step(self) -> float:
        """Decide for one batch."""
        if not self._waiting:
            await self._news.wait()
            self._news.clear()
            return 0.0
        try:
            live = live_versions(await self._engine.inspector.types())
            for number in list(self._waiting)[:BATCH]:
                await self._place(number, live)
        except StoreError as error:
            events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=True)
            await runtime.sleep(_PAUSE)
        return 0.0

    async def stop(self) -> None:
        """End; whatever was not decided is given back by the rescue."""
        self._stopped.set()
        self._news.set()
        await super().stop()

    async def _place(self, number: int, live: dict[str, list[Version]]) -> None:
        run, error = self._waiting[number]
        job = run.claim.job
        # What refused it before, and the store's time, stand in its record.
        record = await self._engine.inspector.job(job.id)
        if self._waiting.pop(number, None) is None:
            return  # lost meanwhile
        now_ms = job.due_at_ms if record is None else record.claimed_at_ms or job.due_at_ms
        before = () if record is None or record.error is None else record.error.refusals
        misfit = refused(
            job, run.type.hash, error, before=before, live=live.get(job.type, []), now_ms=now_ms
        )
        self._on_placed(run, misfit)
        self._warn(run)
        self._look_empty()

    def _warn(self, run: Run) -> None:
        """Say that jobs of a type do not fit, now and then."""
        name, now = run.type.name, runtime.monotonic()
        if now - self._warned.get(name, -WARN_AGAIN) < WARN_AGAIN:
            return
        self._warned[name] = now
        told = (
            f"jobs of `{name}` have arguments that this worker's {run.type.signature.text} does "
            f"not take; they wait for another version: `lamplighter why {run.claim.job.id}`"
        )
        events.emit(events.WORKER_WARNED, text=told)

    def _look_empty(self) -> None:
        if not self._waiting:
            self._empty.set()
