"""Waiting until replicas have what was written on a connection.

The server holds up all that follows a WAIT, so one WAIT serves everybody who asks while another is
under way. A call waits for two of them at most.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from lamplighter.engines.redis import scripts
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.connection import Connection
from lamplighter.engines.redis.wire import ReplyError, pack
from lamplighter.model.errors import StoreBusy

log = logging.getLogger(__name__)

_CONFIRM = scripts.script("confirm")


class Replication:
    """Asks for one connection, on behalf of all who have written on it."""

    def __init__(self, connection: Connection, address: Address, longest: float) -> None:
        self.connection = connection
        self._address = address
        self._seconds = min(address.replica_timeout, longest)
        self._wait = pack(("WAIT", address.replicas, round(self._seconds * 1000)))
        self._place: tuple[bytes, bytes] = (b"", b"")
        self._under_way = False
        self._next: asyncio.Future[Any] | None = None

    def confirmed(self, place: tuple[bytes, bytes]) -> asyncio.Future[Any]:
        """Return how many replicas will have all that was sent so far, or an error of the server.

        ``place`` is that of the first shard. The future is shared: shield it.
        """
        self._place = place
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            self._next.add_done_callback(_seen)
        future = self._next
        if not self._under_way:
            self._send()
        return future

    def check(self, count: int) -> None:
        """Refuse an answer that a failover may take back."""
        if count >= self._address.replicas:
            return
        where = self._address.shown
        said = f"{count} of {self._address.replicas} replicas confirmed it in {self._seconds:g} s"
        log.warning("a write at %s may not be replicated: %s", where, said)
        raise StoreBusy(
            f"what was asked at {where} is done, but may not be replicated: {said}",
            hint="see that the replicas follow (INFO replication), then repeat what was asked, "
            "which is safe; until they have caught up, a failover loses this",
            value=where,
        )

    def _send(self) -> None:
        future, self._next = self._next, None
        if future is None:
            return
        self._under_way = True
        # Some servers wait only for writes of this connection. A call that finds its work done has
        # written nothing, and who did may never have been told that it was confirmed.
        marked = self.connection.ask(pack((b"EVAL", _CONFIRM.text, b"2", *self._place, b"")))
        counted = self.connection.ask(self._wait)
        marked.add_done_callback(_seen)

        def done(counted: asyncio.Future[Any]) -> None:
            self._under_way = False
            _pass_on(marked, counted, future)
            self._send()

        counted.add_done_callback(done)


def _pass_on(
    marked: asyncio.Future[Any], counted: asyncio.Future[Any], future: asyncio.Future[Any]
) -> None:
    """Hand the count to those who wait, or the reason why there is none."""
    error = counted.exception()
    if error is not None:
        future.set_exception(error)
    elif isinstance(marked.result(), ReplyError):
        future.set_result(marked.result())
    else:
        future.set_result(counted.result())


def _seen(future: asyncio.Future[Any]) -> None:
    """Say that an error was seen, also if nobody waits for it any more."""
    if not future.cancelled():
        future.exception()
