"""What an adapter offers: the same things for every peer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from benchmarks.peers.facts import Facts

BATCH = 1_000
"""Jobs of one bulk submission."""

BATCH_SIZE = "BENCHMARK_BATCH_SIZE"
"""Variable that says how many jobs a worker claims at once, for peers where that can be set."""

PAYLOAD = '{"payload":"' + "x" * 86 + '"}'
"""Arguments of 100 bytes, as JSON."""

Ran = Callable[[int], None]
"""What a handler calls first: with the number of its job, or -1 if only counting is wanted."""


class Producer(Protocol):
    """A client that is connected."""

    async def submit_bulk(self, jobs: int) -> None:
        """Submit so many jobs by one call of the peer's own bulk function."""
        ...

    async def submit_single(self, number: int = -1) -> None:
        """Submit one job, and wait until it is safe."""
        ...

    async def submit_due(self, numbers: range, due: float) -> None:
        """Submit a job for each number, all due at that second of the Unix clock."""
        ...


class Foreign(Protocol):
    """A module that knows a peer whose processes are not in Python."""

    FACTS: Facts

    def command(self, role: str, *rest: str) -> list[str]:
        """Give the command of a process."""
        ...


class Adapter(Protocol):
    """A module that knows one peer."""

    FACTS: Facts

    def run(self, main: Awaitable[None]) -> None:
        """Run a coroutine in the event loop that the peer's own command line uses."""
        ...

    async def prepare(self, url: str) -> None:
        """Make what it needs in an empty database."""
        ...

    def producer(self, url: str) -> AbstractAsyncContextManager[Producer]:
        """Connect a client."""
        ...

    async def work(self, url: str, ran: Ran) -> None:
        """Run jobs as the peer's worker does, until the process is told to end."""
        ...
