"""One coordinator as a process of its own: `python -m tests.faults.coordinator NAME=VALUE …`.

It believes to be alone, unless it is told of a fleet. It notes what it is handed out before it
plans, and, where it is to do itself harm, stops or dies around the moment of writing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from lamplighter import config, coordinator, runtime
from lamplighter.connect import connect
from lamplighter.coordinator import fire
from lamplighter.fleet import Fleet
from lamplighter.model.errors import LamplighterError
from lamplighter.observability import events
from lamplighter.port.schedules import DueSchedules, FireAnswer, Fired, Firing, ScheduleStore
from lamplighter.port.store import Engine
from lamplighter.port.values import NewWorker
from lamplighter.service import Service
from tests.faults.history import Journal
from tests.faults.rules import FOLDER

NOTE = 0.2
"""Seconds between two notes of what was counted."""
ARMED = "armed"
AMID = (0.002, 0.05)
"""Seconds after which one dies that dies amid a write, which takes about as long."""
BEFORE = {signal.SIGKILL: 1 / 5, signal.SIGSTOP: 7 / 8}
"""How often it happens before a write, and not in the midst of it."""
LARGE = 8
"""So many plans are a large write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What it is told when it is started."""

    seed: str = ""
    harm: float = 0.0
    """Chance that it harms itself with a large write."""
    until: float = 0.0
    """It does itself harm before this time of the machine's own clock."""
    sleepy: int = 0
    """1: it stops before its first write that is not small, and does itself no other harm until
    then."""
    lease_ms: int = fire.LEASE_MS
    workers: int = 1
    """How many workers it is made to believe in."""
    dies_with: int = 0
    """How many schedules it must have in hand at least to die with them, once there is a file
    `ARMED`; 0: it lives."""


class Harm:
    """Stops or kills its own process before, in the middle of, or after a write."""

    def __init__(self, folder: Path, journal: Journal, options: Options) -> None:
        self._journal = journal
        self._options = options
        self._dice = random.Random(f"{options.seed}-{os.getpid()}")
        self._armed = folder / ARMED
        self._sleepy = options.sleepy == 1

    def strike(self, firings: Sequence[Firing]) -> None:
        """Decide about one write, which begins now; small ones are mostly left in peace."""
        options, dice = self._options, self._dice
        if 0 < options.dies_with <= len(firings) and self._armed.exists():
            self._do(signal.SIGKILL)
        if runtime.boottime() >= options.until:
            return
        if self._sleepy:
            if len(firings) >= LARGE / 2:
                self._sleepy = False
                self._do(signal.SIGSTOP)
            return
        chance = options.harm * min(1.0, len(firings) / LARGE)
        if dice.random() >= chance:
            return
        number = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
        # One that is stopped amid a write may keep all others from writing: that is seldom done.
        if dice.random() < BEFORE[number]:
            self._do(number)
            return
        least, most = AMID
        seconds = least * (most / least) ** dice.random()
        later = threading.Timer(seconds, self._do, (number,))
        later.daemon = True
        later.start()

    def _do(self, number: int) -> None:
        if number == signal.SIGKILL:
            self._journal.write("killed", what="coordinator", pid=os.getpid())
        else:
            self._journal.write("stopped_by_signal", pid=os.getpid())
        os.kill(os.getpid(), number)


class Noted:
    """The schedules of a store; what is handed out is noted, and writes are dangerous."""

    def __init__(self, schedules: ScheduleStore, journal: Journal, harm: Harm | None) -> None:
        self._schedules = schedules
        self._journal = journal
        self._harm = harm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedules, name)

    async def due_schedules(self, **given: Any) -> DueSchedules:
        found = await self._schedules.due_schedules(**given)
        if found.schedules:
            due = [(one.record.id, one.record.cursor_ms) for one in found.schedules]
            self._journal.write("look", pid=os.getpid(), store=found.now_ms, due=due)
        return found

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        if self._harm is None:
            return await self._schedules.fire(firings)
        self._harm.strike(firings)
        answers = await self._schedules.fire(firings)
        stale = sum(one.answer is FireAnswer.STALE for one in answers)
        if stale:
            self._journal.write("stale", pid=os.getpid(), count=stale)
        return answers


class Watched:
    """An engine with noted schedules."""

    def __init__(self, engine: Engine, journal: Journal, harm: Harm | None = None) -> None:
        self._engine = engine
        self.schedules = Noted(engine.schedules, journal, harm)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def watched(engine: Engine, journal: Journal, harm: Harm | None = None) -> Engine:
    """Give an open engine of which everything is noted that the judge has to know."""
    return cast("Engine", Watched(engine, journal, harm))


class Beater(Service):
    """Gives signs of life for a fleet of which we are the only one."""

    name = "beat"

    def __init__(self, engine: Engine, fleet: Fleet, workers: int, interval: float) -> None:
        super().__init__()
        self._engine, self._fleet = engine, fleet
        self._workers, self._interval = workers, interval
        self._id = runtime.incarnation()

    async def step(self) -> float:
        sent_at = runtime.boottime()
        beat = await self._engine.membership.beat(self._id, 0)
        if not beat.known:
            me = NewWorker(id=self._id, host="-", pid=os.getpid(), queues=("default",), slots=1)
            beat = await self._engine.membership.join(me)
        self._fleet.note(replace(beat, workers=self._workers), self._interval, sent_at)
        return self._interval


class Notes(Service):
    """Writes down what was counted, and how long ago each loop got on."""

    name = "notes"

    def __init__(self, journal: Journal, services: Sequence[Service], fleet: Fleet) -> None:
        super().__init__()
        self._journal, self._services, self._fleet = journal, services, fleet

    async def step(self) -> float:
        now = runtime.monotonic()
        (firer,) = (one for one in self._services if isinstance(one, fire.Firer))
        counts = firer.counts
        self._journal.write(
            "counted",
            pid=os.getpid(),
            fired=counts.fired,
            unreadable=counts.unreadable,
            calm=self._fleet.keeps_watch,
            ages={one.name: now - one.progress for one in self._services},
        )
        return NOTE


async def main(options: Options) -> None:
    folder = Path(os.environ[FOLDER])
    journal = Journal(folder / "history.jsonl")

    def tell(name: str, given: Mapping[str, Any]) -> None:
        if name in {events.SERVICE_ERROR, events.SERVICE_STUCK}:
            plain = {key: str(value) for key, value in given.items()}
            journal.write("trouble", pid=os.getpid(), name=name, fields=plain)

    fire.LEASE_MS = options.lease_ms
    events.listen(tell)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    engine = connect(os.environ["LAMPLIGHTER_URL"])
    await _open(engine)
    settings, fleet = config.load(), Fleet(options.workers)
    noted = watched(engine, journal, Harm(folder, journal, options))
    services = coordinator.services(noted, settings, fleet)
    if options.workers > 1:
        services.append(Beater(engine, fleet, options.workers, settings.beat))
    services.append(Notes(journal, services, fleet))
    for service in services:
        service.start()
    journal.write("coordinating", pid=os.getpid())
    await stopped.wait()
    for service in services:
        await service.stop()
    await engine.close()


async def _open(engine: Engine) -> None:
    """Open the store, which may be down just now."""
    while True:
        try:
            await engine.open()
        except LamplighterError:
            with contextlib.suppress(LamplighterError):
                await engine.close()
            await runtime.sleep(NOTE)
        else:
            return


def _options(words: Sequence[str]) -> Options:
    kinds = {field.name: type(field.default) for field in fields(Options)}
    pairs = [word.partition("=") for word in words]
    return Options(**{name: kinds[name](text) for name, _, text in pairs})


if __name__ == "__main__":
    asyncio.run(main(_options(sys.argv[1:])))
