"""Says to others that a worker lives."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Protocol

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.config import Settings
from lamplighter.connect import store_name
from lamplighter.fleet import Fleet
from lamplighter.model.errors import StoreError
from lamplighter.model.versions import MOST_SLOTS, free_slot
from lamplighter.observability import events
from lamplighter.port.health import DEAD_MS
from lamplighter.port.store import Engine
from lamplighter.port.values import Beat, NewWorker
from lamplighter.port.versions import slots_of
from lamplighter.service import Service

WAIT_FOR_HELLO = 0.1
SLOT_TRIES = 10
SLOT_BACKOFF = Backoff(0.005, 5.0, spread=1.0)
"""After which a worker that met another on a slot looks again."""
SLOT_AGAIN = 60.0
"""Seconds after which a worker for whose versions no slot was free looks for one again."""
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
        """Return what others may know of it, once there is something to know."""
        ...

    def running(self) -> int:
        """Count its running handlers."""
        ...

    def joined(self, member: NewWorker) -> None:
        """Take in as what it has joined."""
        ...

    def unstarted(self) -> list[str]:
        """Return the ids of jobs that it has claimed without having called their handlers."""
        ...


class Membership(Service):
    """Says that the worker lives, and enters it again when the store has forgotten it."""

    name = "membership"
    patience = 120.0

    def __init__(self, engine: Engine, settings: Settings, worker: Member) -> None:
        super().__init__()
        self._engine = engine
        self._beat = settings.beat
        self._store = store_name(settings.url)
        self._worker = worker
        self._joined: NewWorker | None = None
        self._heard_at = runtime.boottime()
        """When the last sign of life was sent that was answered."""
        self._slot_again_at = inf
        self.fleet = Fleet()

    async def step(self) -> float:
        """Join or beat. Until the first child has said what it can run there is nothing to say."""
        member = self._worker.member()
        if member is None:
            return WAIT_FOR_HELLO
        if self._joined != member or self._wants_slot() or not await self._is_known():
            await self._join(member)
            self._joined = member
        if not self._worker.serving:
            self._worker.serving = True
            events.emit(
                events.WORKER_STARTED, worker=member.id, queues=member.queues, store=self._store
            )
        # Apart from each other, also when all were answered at once after a standstill: something
        # is heard from one of many all the time.
        return self._interval * (1 + SCATTER * (2 * runtime.random() - 1))

    @property
    def _interval(self) -> float:
        """Seconds between two signs of life: of very many workers, each gives fewer."""
        return self._beat * min(LONGEST, max(1.0, self.fleet.workers / FEW))

    def _wants_slot(self) -> bool:
        """Whether others may have taken it for dead, and its slot for their versions.

        One that found all slots taken tries again, too.
        """
        now = runtime.boottime()
        return now - self._heard_at > DEAD_MS / 1000 or now >= self._slot_again_at

    async def _join(self, member: NewWorker) -> None:
        """Join on a slot where no other version of its types stands.

        Others may join at the same moment. Who finds that afterwards waits for a random time, and
        looks again: of two that met, the first to move leaves the slot to the other. Without the
        wait they could move to the last free slot together, again and again.
        """
        hashes = {info.name: info.hash for info in member.types}
        slot = await self._free_slot(hashes, 1)
        await self._enter(replace(member, version_slot=slot))
        for attempt in range(1, SLOT_TRIES + 1):
            if await self._free_slot(hashes, slot) == slot:
                break
            await runtime.sleep(SLOT_BACKOFF.after(attempt))
            if await self._free_slot(hashes, slot) == slot:
                break
            slot = await self._free_slot(hashes, 1 + int(runtime.random() * MOST_SLOTS))
            await self._enter(replace(member, version_slot=slot))
        else:
            slot = 0
            await self._enter(member)
        self._slot_again_at = inf if slot or not hashes else runtime.boottime() + SLOT_AGAIN
        self._worker.joined(replace(member, version_slot=slot))
        self.fleet.joins += 1

    async def _enter(self, member: NewWorker) -> None:
        sent_at = runtime.boottime()
        self._note(await self._engine.membership.join(member), sent_at)

    async def _free_slot(self, hashes: Mapping[str, str], wanted: int) -> int:
        if not hashes:
            return 0
        others = slots_of(await self._engine.inspector.types())
        return free_slot(hashes, others, wanted)

    async def _is_known(self) -> bool:
        sent_at = runtime.boottime()
        worker = self._worker
        beat = await self._engine.membership.beat(worker.id, worker.running(), worker.unstarted())
        self._note(beat, sent_at)
        if not beat.known:
            self.fleet.forgotten += 1
        return beat.known

    def _note(self, beat: Beat, sent_at: float) -> None:
        self._heard_at = sent_at
        self.fleet.note(beat, self._interval, sent_at)

    async def stop(self) -> None:
        """Take the worker out."""
        await super().stop()
        if self._joined is not None:
            with contextlib.suppress(StoreError):
                await self._engine.membership.leave(self._worker.id)
