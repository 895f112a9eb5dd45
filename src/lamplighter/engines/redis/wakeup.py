"""Wake-ups between processes: who waits is told through a list of its own.

Who has news raises the number of the topic and leaves a word in the list of everybody who waits
for it, in one script. Those who are at work are told nothing: before their next wait they compare
numbers. So news costs little when everybody is busy, and nothing is missed.

All of it is a hint, kept in keys that expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import blake2b

from lamplighter import runtime
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.ear import Ear
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.errors import StoreClosed, StoreError

_QUIET_SECONDS = 0.002
_SEND_SECONDS = 2.0
_CLOSE_SECONDS = 1.0
_MOST_TOPICS = 100


class RedisWakeup:
    """Both ends: tells others, and waits to be told."""

    def __init__(self, address: Address, transport: Transport) -> None:
        self._address = address
        self._transport = transport
        self._ears: dict[asyncio.AbstractEventLoop, Ear] = {}
        self._voices: dict[asyncio.AbstractEventLoop, _Voice] = {}
        self._closed = False

    async def notify(self, topic: str) -> None:
        """Tell at once; what follows within 2 ms is told together at its end."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        voice = self._voices.get(loop)
        if voice is None:
            _forget_closed(self._voices)
            voice = self._voices[loop] = _Voice(self._transport)
        voice.say(hash_of(topic))

    async def wait(self, topics: Sequence[str], timeout: float) -> bool:
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
        voice = self._voices.get(loop)
        if voice is not None:
            await voice.finish()
        for home, ear in self._ears.items():
            await ear.close(wait=home is loop)
        self._ears.clear()
        self._voices.clear()

    def _ear(self) -> Ear:
        loop = asyncio.get_running_loop()
        ear = self._ears.get(loop)
        if ear is None:
            _forget_closed(self._ears)
            ear = self._ears[loop] = Ear(self._address, self._transport)
        return ear


class _Voice:
    """Speaks for one event loop: once every 2 ms at most, for all topics that had news."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pending: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def say(self, news: str) -> None:
        self._pending.add(news)
        if self._task is None or self._task.done():
            self._task = runtime.spawn(self._send(), name="redis-notify")

    async def finish(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)

    async def _send(self) -> None:
        """Send until there is no more news, with a rest after each time."""
        while self._pending:
            news = [self._pending.pop() for _ in range(min(len(self._pending), _MOST_TOPICS))]
            try:
                async with asyncio.timeout(_SEND_SECONDS):
                    await self._transport.run("notify", news)
            except (StoreError, TimeoutError):
                pass  # whoever waits looks by itself a little later
            await runtime.sleep(_QUIET_SECONDS)


def _forget_closed(
    ends: dict[asyncio.AbstractEventLoop, Ear] | dict[asyncio.AbstractEventLoop, _Voice],
) -> None:
    """Let go of what belongs to loops that have ended."""
    for loop in [loop for loop in ends if loop.is_closed()]:
        del ends[loop]


def hash_of(topic: str) -> str:
    """Give the short form of a topic that is sent."""
    return blake2b(topic.encode("utf-8", "replace"), digest_size=8).hexdigest()
