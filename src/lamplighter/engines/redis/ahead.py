"""A claim that waits at the server, to be made as soon as there is news.

It is sent right behind the call that waits for news, on the same connection. A server reads no
further while a client is blocked, so the claim is made the moment the news has been told, and both
answers arrive together: a way to us and back is saved for every job that meets an idle worker.

Nothing depends on it. If its answer is lost, or it has not been made yet, the same claim is made in
the ordinary way under the same nonce, and the store gives what it gave before.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lamplighter import runtime
from lamplighter.engines.redis.connection import Connection

MOST = 1
"""Jobs it takes. A process that was stopped just now would keep more of them waiting for long; one
that is not asks again at once where there is more."""
LONGEST_SECONDS = 20.0
"""So long it may wait at the server; then it is made in any case."""

_ANSWER_SECONDS = 5.0
_NO_JOBS = 4
"""Length of an answer to a claim that handed out nothing."""


class Ahead:
    """One claim sent ahead, from when it is wanted until its answer is taken."""

    def __init__(self, nonce: str, packed: bytes, lease_ms: int) -> None:
        self.nonce = nonce
        self.seconds = min(LONGEST_SECONDS, lease_ms / 4000)
        """How long the call in front of it may wait: what is claimed must not be old already."""
        self.sent_at = 0.0
        self.waiter: asyncio.Future[None] | None = None
        self._packed = packed
        self._reply: asyncio.Future[Any] | None = None

    @property
    def is_sent(self) -> bool:
        """Whether it is at the server, or has been."""
        return self._reply is not None

    @property
    def is_answered(self) -> bool:
        """Whether its answer is here, or will never be."""
        return self._reply is not None and self._reply.done()

    def send(self, connection: Connection) -> None:
        """Send it, behind a call that waits."""
        self.sent_at = runtime.boottime()
        self._reply = connection.ask(self._packed)
        # Nobody may want the answer any more, when its connection breaks or is let go.
        self._reply.add_done_callback(_look_at)

    async def answered(self) -> None:
        """Wait for its answer, whatever that is, a little while."""
        if self._reply is not None and not self._reply.done():
            await asyncio.wait({self._reply}, timeout=_ANSWER_SECONDS)

    @property
    def reply(self) -> Any:
        """What the server has answered; None if that is not known, or was an error."""
        reply = self._reply
        if reply is None or not reply.done() or reply.cancelled() or reply.exception() is not None:
            return None
        found = reply.result()
        return None if isinstance(found, Exception) else found

    @property
    def took_nothing(self) -> bool:
        """Whether it was made and handed out nothing."""
        reply = self.reply
        return isinstance(reply, list) and len(reply) <= _NO_JOBS  # pyright: ignore[reportUnknownArgumentType]

    def again(self) -> Ahead:
        """Give the same claim, not sent yet."""
        same = Ahead(self.nonce, self._packed, 0)
        same.seconds, same.waiter = self.seconds, self.waiter
        return same

    def wake(self) -> None:
        """Wake who wants its answer."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


def _look_at(reply: asyncio.Future[Any]) -> None:
    """Take note of an error, which would be reported as overlooked."""
    if not reply.cancelled():
        reply.exception()
