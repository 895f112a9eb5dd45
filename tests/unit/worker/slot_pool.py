"""A pool of slot processes with everything around it in sight."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.journal import Line, lines_of
from lamplighter.model.outcome import Outcome
from lamplighter.observability import events
from lamplighter.worker.run import Run
from lamplighter.worker.slots import Slots
from tests.unit.worker import slot_program
from tests.unit.worker.fakes import make_claim, until


class Pool:
    """Slots, what they said, and a tick."""

    def __init__(self, name: str, limit: int, **settings) -> None:
        self.app = getattr(slot_program, name)
        self.ended: dict[int, list[Outcome | None]] = {}
        self.told: list[str] = []
        self.sent: list[Run] = []
        self.ready: list[Run] = []
        self.worker = f"host-boot-1-{runtime.nonce()}"
        self._count = 0
        self.slots = Slots(
            spec=f"tests.unit.worker.slot_program:{name}",
            settings=Settings(**settings),
            path=list(sys.path),
            worker=self.worker,
            limit=limit,
            on_end=lambda run, outcome: self.ended.setdefault(run.number, []).append(outcome),
            on_sent=self.sent.append,
            on_ready=self.ready.append,
        )

    def start(
        self, type: str, *, timeout: float = 60.0, hard_after: float = 60.0, **arguments
    ) -> Run:
        run = self._run(type, timeout=timeout, hard_after=hard_after, **arguments)
        self.slots.start(run)
        return run

    def prepare(self, type: str, **arguments) -> Run:
        run = self._run(type, timeout=60.0, hard_after=60.0, **arguments)
        self.slots.prepare(run)
        return run

    def _run(self, type: str, *, timeout: float, hard_after: float, **arguments) -> Run:
        self._count += 1
        claim = make_claim(self._count, type=type, args=msgspec.json.encode(arguments))
        now = runtime.boottime()
        run = Run(self._count, claim, self.app.registry.get(type), timeout, now, started_at=now)
        run.soft_end = now + timeout
        run.hard_end = now + timeout + hard_after
        return run

    async def end(self, run: Run) -> Outcome | None:
        await until(lambda: run.number in self.ended, 30)
        (outcome,) = self.ended[run.number]
        return outcome

    async def outcome(self, type: str, **arguments) -> Outcome | None:
        return await self.end(self.start(type, **arguments))

    async def result(self, type: str, **arguments) -> object:
        return msgspec.json.decode((await self.outcome(type, **arguments)).result)


@contextlib.asynccontextmanager
async def pool(name: str = "app", limit: int = 2, **settings) -> AsyncIterator[Pool]:
    opened = Pool(name, limit, **settings)
    stop = events.listen(lambda event, fields: opened.told.append(f"{event} {fields.get('error')}"))

    async def tick() -> None:
        while True:
            opened.slots.tick(runtime.boottime())
            await asyncio.sleep(0.02)

    ticking = asyncio.create_task(tick())
    try:
        yield opened
    finally:
        pids = opened.slots.pids
        await opened.slots.close()
        ticking.cancel()
        stop()
    assert not [pid for pid in pids if is_alive(pid)]
    assert not opened.slots.pids
    assert all(len(outcomes) == 1 for outcomes in opened.ended.values())
    assert opened.slots.room == opened.slots.limit


def is_alive(pid: int) -> bool:
    """Whether it runs; one that is dead and not buried does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return True


def lines(run: Run) -> list[Line]:
    """What a run has said and nobody has taken."""
    journal = None if run.notes is None else run.notes.take()
    return [] if journal is None else lines_of(journal.pieces)
