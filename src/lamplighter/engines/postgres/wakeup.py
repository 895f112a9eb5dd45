"""Wake-ups between processes: NOTIFY on one channel per store.

Committing a NOTIFY takes a lock that the whole server shares, so a process sends at most one every
10 ms, for all topics that had news meanwhile. It names no job: only who sends, and a hash of each
topic. Who sends tells those who wait in its own process directly, and skips its own echo.

The word for a single job travels with its submission, if none was said in the last 10 ms: whoever
submitted it then has nothing left to say.

All of it is a hint. Where the server can keep no more news, because somebody who listens does not
hear, nothing is said for a minute. Behind a pooler that lends connections for single transactions
nothing is ever heard; that is found out, and then a wait is only a wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from hashlib import blake2b

from lamplighter import runtime
from lamplighter.engines.postgres import faults
from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.ear import Ear
from lamplighter.engines.postgres.pool import Pools
from lamplighter.model.errors import StoreClosed, StoreError

_QUIET_SECONDS = 0.010
_SEND_SECONDS = 2.0
_CLOSE_SECONDS = 1.0
_MOST_TOPICS = 100
_FRESH_SECONDS = 0.05
_MUTE_SECONDS = 60.0
EVERYTHING = "*"
"""Stands for all topics where naming them would take too long."""

_SEND = (
    "SELECT pg_catalog.set_config('synchronous_commit', 'off', true), "
    "pg_catalog.pg_notify(%s, news) FROM pg_catalog.unnest(%s::pg_catalog.text[]) AS news"
)
_USAGE = "SELECT pg_catalog.pg_notification_queue_usage()"
_FULL = 0.9


_said: ContextVar[tuple[str, float] | None] = ContextVar("said", default=None)
"""What the last submission of a task has told already, and when."""


class PostgresWakeup:
    """Both ends: tells others, and waits to be told."""

    def __init__(self, address: Address, pools: Pools) -> None:
        self._address = address
        self._pools = pools
        self._channel = channel_of(address.schema)
        self._origin = f"{runtime.random_bits(32):08x}"
        self._ears: dict[asyncio.AbstractEventLoop, Ear] = {}
        self._pending: set[str] = set()
        self._sender: asyncio.Task[None] | None = None
        self._muted_until: float | None = None
        """None: there is room for news, as far as is known."""
        self._closed = False

    async def notify(
        self,
        topic: str,
        *,
        jobs: Mapping[str, int] | None = None,
    ) -> None:
        """Tell at once; what follows within 10 ms is told together at its end.

        Everybody is woken, whatever it is about.
        """
        if self._closed:
            return
        news = hash_of(topic)
        self._tell(news)
        if not self._address.listen or self._muted() or self._was_said(news):
            return
        self._pending.add(news)
        if self._sender is None or self._sender.done():
            self._sender = runtime.spawn(self._send(), name="postgres-notify")

    def word(self, topic: str) -> tuple[str, str] | None:
        """Return what a submission may say itself: nothing within 10 ms of the last word."""
        _said.set(None)
        busy = self._sender is not None and not self._sender.done()
        full = self._muted_until is not None
        if self._closed or busy or full or not self._address.listen:
            return None
        self._sender = runtime.spawn(self._rest(), name="postgres-notify")
        return self._channel, f"{self._origin}:{hash_of(topic)}"

    def said(self, topic: str) -> None:
        """Note that the word has been said, so that the same task need not say it again."""
        _said.set((hash_of(topic), runtime.monotonic()))

    def mute(self) -> None:
        """Say nothing for a while: the server can keep no more news, and each try is an error."""
        self._muted_until = runtime.monotonic() + _MUTE_SECONDS

    def _muted(self) -> bool:
        return self._muted_until is not None and runtime.monotonic() < self._muted_until

    def _was_said(self, news: str) -> bool:
        said = _said.get()
        _said.set(None)
        return (
            said is not None and said[0] == news and runtime.monotonic() < said[1] + _FRESH_SECONDS
        )

    async def wait(
        self,
        topics: Sequence[str],
        timeout: float,
        *,
        types: Collection[str] | None = None,
    ) -> bool:
        """Wait for news of these topics."""
        if self._closed:
            raise StoreClosed(
                "the store was closed while somebody waited for its news",
                hint="close it after the last user has ended",
            )
        return await self._ear().hear(frozenset(map(hash_of, topics)), timeout)

    async def close(self) -> None:
        """Send what was not sent yet, and let go of all connections."""
        self._closed = True
        loop = asyncio.get_running_loop()
        if self._sender is not None and self._sender.get_loop() is loop:
            await asyncio.wait({self._sender}, timeout=_CLOSE_SECONDS)
        for home, ear in self._ears.items():
            await ear.close(wait=home is loop)
        self._ears.clear()

    def _ear(self) -> Ear:
        loop = asyncio.get_running_loop()
        ear = self._ears.get(loop)
        if ear is None:
            ear = self._ears[loop] = Ear(self._address, self._channel, self._origin, self._probe)
        return ear

    def _tell(self, news: str) -> None:
        here = asyncio.get_running_loop()
        for loop, ear in list(self._ears.items()):
            if loop is here:
                ear.told({news})
            elif not loop.is_closed():
                loop.call_soon_threadsafe(ear.told, {news})

    async def _rest(self) -> None:
        """Be quiet after a word that a submission has said, then send what has come up since."""
        await runtime.sleep(_QUIET_SECONDS)
        await self._send()

    async def _send(self) -> None:
        """Send until there is no more news, with a rest after each time."""
        while self._pending:
            news, self._pending = self._pending, set()
            if len(news) > _MOST_TOPICS:
                news = {EVERYTHING}
            await self._notify(sorted(news))
            if not self._closed:
                await runtime.sleep(_QUIET_SECONDS)

    async def _probe(self) -> bool:
        """Send a word that means nothing, to find out whether it is heard."""
        return await self._notify([""])

    async def _notify(self, news: list[str]) -> bool:
        """Send; False where that could not be done."""
        payloads = [f"{self._origin}:{one}" for one in news]
        try:
            if self._muted_until is not None and not await self._has_room():
                self.mute()
                return False
            await self._pools.rows(_SEND, (self._channel, payloads), patience=_SEND_SECONDS)
        except StoreError as error:
            if faults.full_of_news(error):
                self.mute()
            return False  # whoever waits looks by itself a little later
        self._muted_until = None
        return True

    async def _has_room(self) -> bool:
        """Ask whether the server can keep news again.

        The question itself makes room: a full queue is not swept by those who fail to add to it.
        """
        ((usage,),) = await self._pools.rows(_USAGE, patience=_SEND_SECONDS)
        return usage < _FULL


def channel_of(schema: str) -> str:
    """Name the channel of a store."""
    return f"lamplighter_{blake2b(schema.encode(), digest_size=8).hexdigest()}"


def hash_of(topic: str) -> str:
    """Return the short form of a topic that is sent."""
    return blake2b(topic.encode("utf-8", "replace"), digest_size=8).hexdigest()
