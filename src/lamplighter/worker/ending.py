"""By when a worker that was told to end has done so, whatever the store does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from math import inf
from typing import Any

from lamplighter import runtime

KILL_AFTER = 2.0
"""Children that have not ended this long after their grace are killed."""
LAST_CALL = 6.0
"""So long after the grace it is still written what became of their claims. What is not written
then comes back by rescue."""
CLOSE = 2.0
"""Time that the store gets to be closed."""

_LOOK = 0.1
_UNWIND = 0.5
"""Time that something gets to end after it was cut short."""


class Ending:
    """First the grace of the running jobs, then the last call; then nobody waits any more."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        """The worker was told to end."""
        self.over = asyncio.Event()
        """Nothing is waited for any more."""
        self._deadline = inf

    def within(self, grace: float) -> None:
        """Allow running jobs so many seconds; told again, the shorter time counts."""
        self._deadline = min(self._deadline, runtime.boottime() + grace)
        self.begun.set()

    def left(self, after: float) -> float:
        """Seconds until so many seconds after the grace."""
        return self._deadline + after - runtime.boottime()

    async def reached(self, after: float) -> None:
        """Wait for it."""
        await self.begun.wait()
        while (left := self.left(after)) > 0:
            # A second signal may bring the deadline nearer.
            await runtime.sleep(min(left, _LOOK))


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, Any]) -> bool:
    """Do something that may wait for the store; when the event comes first, give it up: False.

    If that has come already, what is asked for gets one turn: it may have more to do than wait.
    """
    task = asyncio.ensure_future(work)
    signal = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({task, signal}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        signal.cancel()
        if not task.done():
            task.cancel()
            # Whatever does not heed it is left behind.
            await asyncio.wait({task}, timeout=_UNWIND)
    if not task.done() or task.cancelled():
        return False
    task.result()
    return True
