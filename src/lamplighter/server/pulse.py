"""Whether the store answers: asked again and again, for as long as somebody wants to know."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lamplighter import runtime
from lamplighter.model.errors import LamplighterError

log = logging.getLogger("lamplighter.server")

PATIENCE = 3.0
"""Seconds after which a store that has not answered the simplest of reads is away."""
EVERY = 1.0
"""Seconds between two questions."""

Probe = Callable[[], Awaitable[object]]
"""Reads something of the store that costs next to nothing."""


class Pulse:
    """Asks the store, and tells when it stops answering and when it answers again."""

    def __init__(self, probe: Probe | None, tell: Callable[[], None]) -> None:
        self._probe = probe
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self.away = False
        """Whether the store did not answer the last question."""

    def start(self) -> None:
        """Begin to ask, unless it is being asked already."""
        if self._task is None and self._probe is not None:
            self._task = runtime.spawn(self._run(self._probe), name="pulse of the store")

    def stop(self) -> None:
        """Ask no more; nothing is known of the store then."""
        if self._task is not None:
            self._task.cancel()
        self._task, self.away = None, False

    async def _run(self, probe: Probe) -> None:
        while True:
            away = not await _answers(probe)
            if away != self.away:
                self.away = away
                log.warning("the store %s", "does not answer" if away else "answers again")
                self._tell()
            await runtime.sleep(EVERY)


async def _answers(probe: Probe) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            await probe()
    except (LamplighterError, TimeoutError, OSError):
        return False
    return True
