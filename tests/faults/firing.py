"""Short stories of coordinators that die between two calls, or write late what they planned."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.coordinator.fire import LEASE_MS, Firer
from lamplighter.model.recurring import CatchUp, Overlap
from lamplighter.port.schedules import Fired, Firing
from lamplighter.port.store import Engine
from tests.faults import rota, table
from tests.faults.coordinator import Noted, Watched, watched
from tests.faults.history import Journal
from tests.faults.rota import Duty

if TYPE_CHECKING:
    from tests.faults.probes import Theatre

DUTIES = (
    rota.plain("all", 1, catch_up=CatchUp.ALL),
    rota.plain("some", 2, catch_up=CatchUp.ALL, window_ms=5_000),
    rota.plain("latest", 1, catch_up=CatchUp.LATEST),
    rota.plain("none", 3, catch_up=CatchUp.NONE, phase_ms=1_000),
    rota.plain("one", 2, catch_up=CatchUp.ALL, overlap=Overlap.QUEUE_ONE),
)


class Dead(BaseException):
    """Nothing is done after this."""


class Mortal:
    """A clock, which an engine reads with every write at least; one of the readings is its end."""

    def __init__(self, theatre: Theatre) -> None:
        self._clock = theatre.clock
        self.left: int | None = None
        """How many readings are left; None: any number."""
        self.died = False

    def now_ms(self) -> int:
        if self.left is not None:
            self.died = self.died or self.left == 0
            if self.died:
                raise Dead
            self.left -= 1
        return self._clock.now_ms()


class Memory:
    """A journal that is not written anywhere."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, kind: str, **fields: Any) -> None:
        self.lines.append({"kind": kind, **fields})


class Held(Noted):
    """Schedules whose writes wait until they are let go."""

    def __init__(self, engine: Engine, memory: Memory) -> None:
        super().__init__(engine.schedules, cast("Journal", memory), None)
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        self.asked.set()
        await self.gate.wait()
        return await super().fire(firings)


class Story:
    """Some schedules, a coordinator that lives, and what was handed out so far."""

    def __init__(self, theatre: Theatre) -> None:
        self.theatre = theatre
        self.memory = Memory()
        self.firer = self.firer_on(theatre.engine)

    def firer_on(self, engine: Engine) -> Firer:
        return Firer(watched(engine, cast("Journal", self.memory)), Settings())

    async def begin(self, duties: Sequence[Duty]) -> None:
        await rota.put(self.theatre.engine, duties, self.theatre.clock.now_ms())

    async def fire_all(self) -> None:
        """Fire until nothing is due."""
        while (await self.firer.fire_batch())[0]:
            pass

    async def end(self, duties: Sequence[Duty]) -> None:
        """Judge, and leave no job behind that has not ended."""
        engine = self.theatre.engine
        found = await table.read(engine)
        looks = table.looks_of(self.memory.lines)
        self.theatre.violations += table.judge(duties, found, looks)
        ids = [job.job.id for jobs in found.jobs.values() for job in jobs]
        for start in range(0, len(ids), engine.capabilities.max_batch):
            some = ids[start : start + engine.capabilities.max_batch]
            await engine.jobs.cancel(some, by="probe", reason="")


async def dead_firer(theatre: Theatre) -> None:
    """A coordinator dies before its first write, or its second, third …; another one goes on.

    At last there is one that has done everything before it would have died.
    """
    story = Story(theatre)
    await story.begin(DUTIES)
    for readings in count():
        theatre.clock.advance(seconds=4)
        clock = Mortal(theatre)
        engine = connect(theatre.scene.url, clock_ms=clock.now_ms, deadline=1.0)
        await engine.open()
        firer = story.firer_on(engine)
        clock.left = readings
        with contextlib.suppress(Dead, Exception):
            await firer.fire_batch()
        clock.left = None
        await engine.close()
        theatre.clock.advance(ms=LEASE_MS + 1)
        await story.fire_all()
        if not clock.died:
            break
    await story.end(DUTIES)


async def late_firer(theatre: Theatre) -> None:
    """A coordinator is stopped between its look and its write, until another one has fired."""
    story = Story(theatre)
    await story.begin(DUTIES)
    for _ in range(2):
        theatre.clock.advance(seconds=4)
        slow = Watched(theatre.engine, cast("Journal", story.memory))
        held = slow.schedules = Held(theatre.engine, story.memory)
        late = asyncio.create_task(Firer(cast("Engine", slow), Settings()).fire_batch())
        await held.asked.wait()
        theatre.clock.advance(ms=LEASE_MS + 1)
        await story.fire_all()
        theatre.clock.advance(seconds=2)
        held.gate.set()
        await late
        await story.fire_all()
    await story.end(DUTIES)
