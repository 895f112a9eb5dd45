"""Idle workers, many to a process: `python -m benchmarks.sleepers COUNT`; ends with its driver.

Each does what an idle `lamplighter worker` with one child asks of the store, over connections of
its own: its claims and waits, its signs of life, and the coordinator's services. It says `ready`
when all are asleep, and answers each line of its input with how many waits have ended with news
since the last: at once, because it came between a claim and the wait, or later. Those whose time
was over do not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Awaitable

from benchmarks.fleet import QUEUE
from lamplighter import config, coordinator, runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.errors import StoreError
from lamplighter.model.lifecycle import milliseconds, settle_all
from lamplighter.model.outcome import Succeeded
from lamplighter.port.patience import Patience
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, NewWorker
from lamplighter.worker.membership import Membership

TYPES = ("count", "note")
"""What they could run."""

_OPENED_AT_ONCE = 20


class Tally:
    """What all sleepers of a process have seen."""

    def __init__(self, count: int) -> None:
        self.woken = 0
        self.complete = asyncio.Event()
        self._awake = count

    def fell_asleep(self) -> None:
        """Count one that waits for the first time."""
        self._awake -= 1
        if not self._awake:
            self.complete.set()


class Sleep(Patience):
    """Counts the waits that news has ended."""

    def __init__(self, seconds: float, tally: Tally) -> None:
        super().__init__(seconds)
        self._tally = tally

    async def during(self, wait: Awaitable[object]) -> None:
        async def counted() -> None:
            if await wait:
                self._tally.woken += 1

        await super().during(counted())


class Sleeper:
    """One idle worker. A job that it is given succeeds at once."""

    def __init__(self, engine: Engine, settings: Settings, tally: Tally) -> None:
        self.id = runtime.incarnation()
        self.serving = False
        self._engine = engine
        self._settings = settings
        self._tally = tally
        self._slept = False
        self._patience = Sleep(settings.poll, tally)

    def member(self) -> NewWorker | None:
        slots = self._settings.slots
        return NewWorker(id=self.id, host="bench", pid=os.getpid(), queues=(QUEUE,), slots=slots)

    def running(self) -> int:
        return 0

    async def live(self) -> None:
        """Claim, and sleep until there is news or the time is over; see `worker.claimer`."""
        membership = Membership(self._engine, self._settings, self)
        services = [
            membership,
            *coordinator.services(self._engine, self._settings, membership.fleet),
        ]
        for service in services:
            service.start()
        while True:
            with contextlib.suppress(StoreError):
                await self._step()

    async def _step(self) -> None:
        request = self._request()
        if not self._slept and self._patience.left(request) > 0:
            self._slept = True
            self._tally.fell_asleep()
        answer = await self._engine.jobs.claim(request, self._patience)
        if answer.claims:
            await self._engine.jobs.settle(settle_all(answer.claims, Succeeded()))

    def _request(self) -> ClaimRequest:
        return ClaimRequest(
            nonce=runtime.nonce(),
            worker=self.id,
            queues=((QUEUE, self._settings.slots),),
            types=TYPES,
            limit=self._settings.slots,
            lease_ms=milliseconds(self._settings.lease),
        )


async def _main(count: int) -> None:
    settings, tally, gate = config.load(), Tally(count), asyncio.Semaphore(_OPENED_AT_ONCE)
    engines = [connect(settings.url) for _ in range(count)]

    async def opened(opening: Awaitable[None]) -> None:
        async with gate:
            await opening

    await asyncio.gather(*(opened(engine.open(create=False)) for engine in engines))
    sleepers = [asyncio.create_task(Sleeper(one, settings, tally).live()) for one in engines]
    await tally.complete.wait()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(tally.woken, flush=True)
        tally.woken = 0
    for sleeper in sleepers:
        sleeper.cancel()


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_main(int(sys.argv[1])))
    # They have nothing to say goodbye to: the server ends as well.
    os._exit(0)
