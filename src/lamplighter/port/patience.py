"""How long a claim may wait where nothing is due."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.port.store import queue_topic
from lamplighter.port.values import Claimed

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from lamplighter.port.store import Wakeup
    from lamplighter.port.values import ClaimRequest

ASK_AGAIN = Claimed([], 0)
"""What a wait comes to that has taken nothing: there may be something by now."""


class Patience:
    """The waits of one caller who claims again and again, from one task.

    It knows what the last answer said: only who was told that nothing is due has to wait, and only
    for more of the same.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        """A store that cannot tell of new jobs is asked for them so often."""
        self.hurried = False
        """Whether the wait is not wanted any more."""
        self._vain: object = None
        """What was asked for when nothing was due; None: the last answer does not say so."""
        self._since = 0.0
        self._due_in = inf
        self._limit: asyncio.Timeout | None = None
        """Of the wait under way."""

    def hurry(self) -> None:
        """End the wait under way, if there is one; otherwise the next does not begin."""
        self.hurried = True
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(0.0)

    def left(self, request: ClaimRequest, at_least: float = 0.0) -> float:
        """Return the seconds that this claim has to wait, unless there is news.

        ``at_least`` is how long a store wants those to wait whom it tells of new jobs.
        """
        if self.hurried or self._vain is None or self._vain != _question(request):
            return 0.0
        longest = min(max(self.seconds, at_least), self._due_in)
        return max(0.0, self._since + longest - runtime.monotonic())

    def asks(self) -> None:
        """Note that the store is asked now: what was known before is of no use."""
        self.hurried, self._vain = False, None

    def answered(self, request: ClaimRequest, answer: Claimed) -> None:
        """Note what the store said; only what leaves room and nothing due is worth a wait."""
        poll, full = answer.poll_after_ms, len(answer.claims) >= request.limit
        self._vain = None if full or poll == 0 else _question(request)
        self._since = runtime.monotonic()
        self._due_in = inf if poll is None else poll / 1000

    async def during(self, wait: Awaitable[object]) -> None:
        """Wait, until somebody is in a hurry."""
        limit = self._limit = asyncio.timeout(None)
        try:
            async with limit:
                await wait
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._limit = None


async def wait_for_work(wakeup: Wakeup, request: ClaimRequest, patience: Patience) -> Claimed:
    """Wait where the store takes nothing meanwhile: it is asked afterwards."""
    seconds = patience.left(request)
    await patience.during(wakeup.wait(topics_of(request), seconds, types=request.types))
    return ASK_AGAIN


def topics_of(request: ClaimRequest) -> list[str]:
    """Topics of what a claim asks for."""
    only_suspects = "" not in request.requirements
    return [queue_topic(queue, suspect=only_suspects) for queue, _ in request.queues]


def _question(request: ClaimRequest) -> object:
    return frozenset(queue for queue, _ in request.queues), request.types, request.requirements
