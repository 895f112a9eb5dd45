"""A claim that waits at the server, to be made as soon as there is news.

It is sent right behind the call that waits for news, on the same connection. A server reads no
further while a client is blocked, so the claim is made the moment the news has been told, and both
answers arrive together: a way to us and back is saved for every job that meets an idle worker.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lamplighter.engines.redis.connection import Connection

MOST = 1
"""Jobs it takes. A process that was stopped just now would keep more of them waiting for long; one
that is not asks again at once where there is more."""
OLDEST = 0.25
"""Part of a lease for which it may wait: what is claimed must not be old already."""

_LONGEST_SECONDS = 20.0
_ANSWER_SECONDS = 5.0


class Ahead:
    """One claim, from when it is to be sent until it is known what it took."""

    def __init__(self, nonce: str, packed: bytes, lease_ms: int) -> None:
        self.nonce = nonce
        self.seconds = min(_LONGEST_SECONDS, OLDEST * lease_ms / 1000)
        """How long the call in front of it may wait."""
        self._packed = packed
        self._reply: asyncio.Future[Any] | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_sent(self) -> bool:
        """Whether it is at the server, or has been."""
        return self._reply is not None

    @property
    def is_answered(self) -> bool:
        """Whether its answer is here, or will never be."""
        return self._reply is not None and self._reply.done()

    def wakes(self, waiter: asyncio.Future[None]) -> None:
        """Wake this one when it is answered."""
        self._waiter = waiter

    def send(self, connection: Connection) -> None:
        """Send it, behind a call that waits."""
        self._reply = connection.ask(self._packed)
        self._reply.add_done_callback(self._answered)

    async def answered(self) -> None:
        """Wait for its answer, whatever that is, a little while."""
        if self._reply is not None and not self._reply.done():
            await asyncio.wait({self._reply}, timeout=_ANSWER_SECONDS)

    @property
    def reply(self) -> Any:
        """What the server has answered, be it an error; None if that is not known."""
        reply = self._reply
        if reply is None or not reply.done() or reply.cancelled() or reply.exception() is not None:
            return None
        return reply.result()

    def _answered(self, reply: asyncio.Future[Any]) -> None:
        if not reply.cancelled():
            reply.exception()  # nobody may want to know, and it would be reported as overlooked
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
