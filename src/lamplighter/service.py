"""The one loop of the house. A service says what one step does and when the next is due."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.model.errors import LamplighterError
from lamplighter.observability import events

WAITED = -1.0
BACKOFF = Backoff(0.1, 5.0)

LATE = 60.0
"""Seconds after which a step that was to come has not come to a good end: a service in health needs
less, since every call of the store ends earlier."""


class Service(ABC):
    """Background work: a step that returns the seconds until the next one.

    A step that raises is told as an event and tried again after a growing pause; the loop itself
    ends only when it is stopped. ``progress`` is the time of the last step that returned, for
    health checks that ask for progress and not for a living process: see `observability/health`.
    """

    name = "service"
    patience: float | None = None
    """Seconds after which a step that has not come to its end is given up and begun anew; None:
    its steps may wait for as long as they like."""

    backoff = BACKOFF
    """Between two steps that raise."""

    def __init__(self) -> None:
        self.progress = runtime.monotonic()
        self.restarts = 0
        """How many steps were given up."""
        self._rest_until = self.progress
        """When the next step is to begin, as the last one has said."""
        self._began: float | None = None
        """When the step began that is under way."""
        self._stopped = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def step(self) -> float:
        """Do a bounded piece of work; return the seconds until the next.

        After 0 others have their turn first; after `WAITED` they have had it during the step.
        """

    @property
    def late(self) -> bool:
        """Whether no step has come to a good end for much longer than the last one said."""
        return runtime.monotonic() - self._rest_until > LATE

    @property
    def stuck(self) -> bool:
        """Whether a step goes on that was to be given up long ago: only a new process helps."""
        if self._began is None or self.patience is None:
            return False
        return runtime.monotonic() - self._began > self.patience + LATE

    def start(self) -> None:
        """Begin; calling it twice is calling it once."""
        if self._task is None:
            self._task = runtime.spawn(self._loop(), name=self.name)

    async def stop(self) -> None:
        """Let the running step finish, then end."""
        self._stopped.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _loop(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            limit = asyncio.timeout(self.patience)
            self._began = runtime.monotonic()
            try:
                async with limit:
                    delay = await self.step()
                failures = 0
                self.progress = runtime.monotonic()
                self._rest_until = self.progress + delay
            except Exception as error:  # noqa: BLE001 - a service must survive any step
                if isinstance(error, TimeoutError) and limit.expired():
                    self.restarts += 1
                    events.emit(events.SERVICE_STUCK, service=self.name, seconds=self.patience)
                expected = isinstance(error, LamplighterError)
                events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=expected)
                failures += 1
                delay = self.backoff.after(failures)
            self._began = None
            await self._rest(delay)

    async def _rest(self, delay: float) -> None:
        if delay == WAITED:
            return
        if delay == 0:
            await runtime.sleep(0)
            return
        sleeper = asyncio.ensure_future(runtime.sleep(delay))
        stopper = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({sleeper, stopper}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            stopper.cancel()
