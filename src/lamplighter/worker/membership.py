"""Says to others that a worker lives."""

from __future__ import annotations

import contextlib
from typing import Protocol

from lamplighter.config import Settings
from lamplighter.model.errors import StoreError
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import NewWorker
from lamplighter.service import Service

WAIT_FOR_HELLO = 0.1


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

    def __init__(self, engine: Engine, settings: Settings, worker: Member) -> None:
        super().__init__()
        self._engine = engine
        self._beat = settings.beat
        self._worker = worker
        self._joined: NewWorker | None = None
        self._workers = 1

    async def step(self) -> float:
        """Join or beat. Until the first child has said what it can run there is nothing to say."""
        member = self._worker.member()
        if member is None:
            return WAIT_FOR_HELLO
        if self._joined != member or not await self._is_known():
            joined = await self._engine.membership.join(member)
            self._joined, self._workers = member, joined.workers
        if not self._worker.serving:
            self._worker.serving = True
            events.emit(events.WORKER_STARTED, worker=member.id, queues=member.queues)
        return self._beat

    async def _is_known(self) -> bool:
        beat = await self._engine.membership.beat(self._worker.id, self._worker.running())
        self._workers = beat.workers
        return beat.known

    def workers(self) -> int:
        """Count the workers there are, as the store has told with the last sign of life."""
        return self._workers

    async def stop(self) -> None:
        """Take the worker out."""
        await super().stop()
        if self._joined is not None:
            with contextlib.suppress(StoreError):
                await self._engine.membership.leave(self._worker.id)
