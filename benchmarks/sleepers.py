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
from dataclasses import replace

from benchmarks.fleet import QUEUE
from lamplighter import config, coordinator, runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.errors import StoreError
from lamplighter.model.lifecycle import milliseconds, settle_all
from lamplighter.model.outcome import Succeeded
from lamplighter.port.store import Engine, queue_topic
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


class Sleeper:
    """One idle worker. A job that it is given succeeds at once."""

    def __init__(self, engine: Engine, settings: Settings, tally: Tally) -> None:
        self.id = runtime.incarnation()
        self.serving = False
        self._engine = engine
        self._settings = settings
        self._tally = tally
        self._slept = False
        self._ahead: ClaimRequest | None = None
        """The claim that was sent along with the last wait, to be made now."""
        self._sent: ClaimRequest | None = None
        """The claim that may wait at the store."""

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
        request, self._ahead = self._ahead or self._request(), None
        answer = await self._engine.jobs.claim(request)
        if self._sent is not None and answer.sent_at is not None:
            self._sent = None
        if answer.claims:
            await self._engine.jobs.settle(settle_all(answer.claims, Succeeded()))
            return
        timeout = max(self._settings.poll, answer.idle_ms / 1000)
        if answer.poll_after_ms is not None:
            timeout = min(timeout, answer.poll_after_ms / 1000)
        if not self._slept:
            self._slept = True
            self._tally.fell_asleep()
        topics = [queue_topic(QUEUE)]
        if self._engine.capabilities.claims_ahead and timeout <= self._settings.lease / 4:
            self._ahead = self._sent = request
        elif self._sent is not None:
            await self._engine.jobs.claim(replace(self._sent, limit=0))
            self._sent = None
        if await self._engine.wakeup.wait(topics, timeout, types=TYPES, ahead=self._ahead):
            self._tally.woken += 1

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
