"""New jobs are refused before the server's memory is used up, so that those it has can end.

From 80 % on nothing is submitted any more. Whoever ends, renews, claims or cancels goes on.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lamplighter import runtime
from lamplighter.engines.redis import faults, server
from lamplighter.engines.redis.server import Memory
from lamplighter.engines.redis.wire import pack

SHARE = 0.8
"""Of its memory that a server may use for new jobs."""
SECONDS = 1.0
"""How long a look at the memory holds."""
UNLIMITED_SECONDS = 10.0
"""The same where the server may use as much as it likes: somebody may set a limit."""
ASK = pack(("INFO", "memory"))


class Admission:
    """What was last known of the server's memory, and who asks next.

    A look is sent together with a submission and decides about the next one: what one process
    submits in a second fits into what is left. Only who was refused waits for a look.
    """

    def __init__(self, where: str, memory: Memory) -> None:
        self._where = where
        self._memory = memory
        self._looked = runtime.monotonic()

    @property
    def full(self) -> bool:
        """Whether new jobs are to be refused."""
        return self._memory.share >= SHARE

    def due(self) -> bool:
        """Tell whether it is time for a look; whoever is told so has to take it."""
        now = runtime.monotonic()
        if now - self._looked < (SECONDS if self._memory.limit else UNLIMITED_SECONDS):
            return False
        self._looked = now
        return True

    def note(self, info: bytes) -> None:
        """Take what a look has found."""
        self._memory = server.memory_of(server.parsed(info))

    def noted(self, looked: asyncio.Future[Any]) -> None:
        """Take it when it comes; what went wrong will show in what was sent with it."""
        if not looked.cancelled() and looked.exception() is None:
            info = looked.result()
            if isinstance(info, bytes):
                self.note(info)

    def check(self) -> None:
        """Refuse new jobs, if there is no room for them."""
        if self.full:
            memory = self._memory
            raise faults.memory_full(
                f"{memory.share:.0%} of the memory of the Redis server at {self._where} are used "
                f"(maxmemory {memory.limit:,}), and from {SHARE:.0%} on no new jobs are taken",
                self._where,
            )
