"""Says to others that a worker lives."""

from __future__ import annotations

import contextlib
from typing import Protocol

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.fleet import Fleet
from lamplighter.model.errors import StoreError
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import Beat, NewWorker
from lamplighter.service import Service

WAIT_FOR_HELLO = 0.1
SCATTER = 0.1
"""Part of the time between two signs of life by which it differs by chance."""
FEW, LONGEST = 1_000, 1.3
"""Of more workers than a few, each lets more time pass between its signs of life, up to so many
times as much: with the usual five seconds, two may still be lost before it is suspected."""


class Member(Protocol):
    """A worker, as far as others are told of it."""

    id: str
    serving: bool

    def member(self) -> NewWorker | None:
        """Give what others may know of it, once there is something to know."""
        ...

    def running(self) -> int:
        """Count its running handlers."""
        ...


class Membership(Service):
    """Says that the worker lives, and enters it again when the store has forgotten it."""

    name = "membership"
    patience = 120.0

    def __init__(self, engine: Engine, settings: Settings, worker: Member) -> None:
        super().__init__()
        self._engine = engine
        self._beat = settings.beat
        self._worker = worker
        self._joined: NewWorker | None = None
        self.fleet = Fleet()

    async def step(self) -> float:
        """Join or beat. Until the first child has said what it can run there is nothing to say."""
        member = self._worker.member()
        if member is None:
            return WAIT_FOR_HELLO
        if self._joined != member or not await self._is_known():
            sent_at = runtime.boottime()
            self._note(await self._engine.membership.join(member), sent_at)
            self._joined = member
        if not self._worker.serving:
            self._worker.serving = True
            events.emit(events.WORKER_STARTED, worker=member.id, queues=member.queues)
        # Apart from each other, also when all were answered at once after a standstill: something
        # is heard from one of many all the time.
        return self._interval * (1 + SCATTER * (2 * runtime.random() - 1))

    @property
    def _interval(self) -> float:
        """Seconds between two signs of life: of very many workers, each gives fewer."""
        return self._beat * min(LONGEST, max(1.0, self.fleet.workers / FEW))

    async def _is_known(self) -> bool:
        sent_at = runtime.boottime()
        beat = await self._engine.membership.beat(self._worker.id, self._worker.running())
        self._note(beat, sent_at)
        return beat.known

    def _note(self, beat: Beat, sent_at: float) -> None:
        self.fleet.note(beat, self._interval, sent_at)

    async def stop(self) -> None:
        """Take the worker out."""
        await super().stop()
        if self._joined is not None:
            with contextlib.suppress(StoreError):
                await self._engine.membership.leave(self._worker.id)
