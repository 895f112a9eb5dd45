"""Wake-ups between processes: who waits is told through a list of its own.

Who has news raises the number of the topic and leaves a word in the lists of some who wait for it,
in one script: one for each new job, who can run it, or everybody where the news is not about jobs.
Those who are at work are told nothing: before their next wait they compare numbers. The number of a
topic is only raised when not everybody was told who should have been: a job that somebody was told
of is no news to those who begin to wait just then. So news costs little however many there are, and
nothing is missed.

The word for a single job travels with its submission.

All of it is a hint, kept in keys that expire.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from lamplighter import runtime
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.ahead import Ahead
from lamplighter.engines.redis.ear import Ear
from lamplighter.engines.redis.shards import shard_of
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.errors import StoreClosed, StoreError
from lamplighter.model.job import NewJob
from lamplighter.port.patience import topics_of
from lamplighter.port.store import queue_topic
from lamplighter.port.values import ClaimRequest

_QUIET_SECONDS = 0.002
_SEND_SECONDS = 2.0
_CLOSE_SECONDS = 1.0
_MOST_TOPICS = 100
_FRESH_SECONDS = 0.05

_said: ContextVar[tuple[str, float] | None] = ContextVar("said", default=None)
"""What the last submission of a task has told already, and when."""


class RedisWakeup:
    """Both ends: tells others, and waits to be told."""

    def __init__(self, address: Address, transport: Transport) -> None:
        self._address = address
        self.transport = transport
        self._ears: dict[asyncio.AbstractEventLoop, Ear] = {}
        self._voices: dict[asyncio.AbstractEventLoop, _Voice] = {}
        self._closed = False
        self._behind: set[asyncio.Task[None]] = set()
        self.rest_ms = 0
        """So long those may wait who are told of new jobs: the more there are who look, the less
        each of them has to."""

    async def notify(self, topic: str, *, jobs: Mapping[str, int] | None = None) -> None:
        """Tell at once; what follows within 2 ms is told together at its end."""
        if not self._closed and not _was_said(topic):
            self._voice().say(hash_of(topic), jobs)

    def word(self, job: NewJob) -> Sequence[str | int]:
        """Return what the submission of one job is to tell, if there is anybody to be told now.

        The task that submits it need not tell it again, unless that took unusually long: then the
        word may have come first. A shard can only tell its own; for others it is sent right behind.
        """
        _said.set(None)
        if self._closed or job.held or job.delay_ms or job.run_at_ms is not None:
            return ()
        topic = queue_topic(job.queue)
        _said.set((topic, runtime.monotonic()))
        if shard_of(job.id, self.transport.shards) == 0:
            return hash_of(topic), 1, job.type, 1
        say = self._voice().say
        asyncio.get_running_loop().call_soon(say, hash_of(topic), {job.type: 1})
        return ()

    def topics(self, request: ClaimRequest) -> list[str]:
        """Topics, in their short form, that this caller waits for."""
        return list(map(hash_of, topics_of(request)))

    def saw(self, topics: Sequence[str], numbers: Sequence[bytes], rest_ms: int) -> None:
        """Note that a claim has found nothing behind the news so far: they wake nobody here."""
        self.rest_ms = rest_ms
        self.ear().saw(topics, numbers)

    async def wait(
        self,
        topics: Sequence[str],
        timeout: float,
        *,
        types: Collection[str] | None = None,
        ahead: Ahead | None = None,
    ) -> bool:
        """Wait for news of these topics, perhaps with a claim that waits at the server."""
        if self._closed:
            raise StoreClosed(
                "the store was closed while somebody waited for its news",
                hint="close it after the last user has ended",
            )
        known = None if types is None else tuple(types)
        return await self.ear().hear(frozenset(map(hash_of, topics)), known, timeout, ahead)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Finish this in the background, at the latest when the store is closed."""
        task = runtime.spawn(work, name="redis-withdraw")
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def close(self) -> None:
        """Send what was not sent yet, and let go of all connections."""
        loop = asyncio.get_running_loop()
        if behind := [task for task in self._behind if task.get_loop() is loop]:
            await asyncio.wait(behind, timeout=_CLOSE_SECONDS)
        self._closed = True
        voice = self._voices.get(loop)
        if voice is not None:
            await voice.finish()
        for home, ear in self._ears.items():
            await ear.close(wait=home is loop)
        self._ears.clear()
        self._voices.clear()

    def _voice(self) -> _Voice:
        loop = asyncio.get_running_loop()
        voice = self._voices.get(loop)
        if voice is None:
            _forget_closed(self._voices)
            voice = self._voices[loop] = _Voice(self.transport)
        return voice

    def ear(self) -> Ear:
        """Return the listening end of the running event loop."""
        loop = asyncio.get_running_loop()
        ear = self._ears.get(loop)
        if ear is None:
            _forget_closed(self._ears)
            ear = self._ears[loop] = Ear(self._address, self.transport)
        return ear


class _Voice:
    """Speaks for one event loop: once every 2 ms at most, for all topics that had news."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._pending: dict[str, Counter[str] | None] = {}
        """Of each topic how many jobs of each type are new; None: the news is for everybody."""
        self._task: asyncio.Task[None] | None = None

    def say(self, news: str, jobs: Mapping[str, int] | None) -> None:
        before = self._pending.get(news, _NOTHING)
        if jobs is None or before is None:
            self._pending[news] = None
        else:
            self._pending[news] = before + Counter(jobs)
        if self._task is None or self._task.done():
            self._task = runtime.spawn(self._send(), name="redis-notify")

    async def finish(self) -> None:
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)

    async def _send(self) -> None:
        """Send until there is no more news, with a rest after each time."""
        while self._pending:
            args: list[str | int] = []
            for _ in range(min(len(self._pending), _MOST_TOPICS)):
                topic, jobs = self._pending.popitem()
                args += (topic, len(jobs or ()))
                for pair in (jobs or _NOTHING).items():
                    args += pair
            try:
                async with asyncio.timeout(_SEND_SECONDS):
                    await self._transport.run("notify", args)
            except (StoreError, TimeoutError):
                pass  # whoever waits looks by itself a little later
            await runtime.sleep(_QUIET_SECONDS)


_NOTHING: Counter[str] = Counter()


def _was_said(topic: str) -> bool:
    """Tell whether this task has just told the same; once."""
    said = _said.get()
    _said.set(None)
    return said is not None and said[0] == topic and runtime.monotonic() < said[1] + _FRESH_SECONDS


def _forget_closed(
    ends: dict[asyncio.AbstractEventLoop, Ear] | dict[asyncio.AbstractEventLoop, _Voice],
) -> None:
    """Let go of what belongs to loops that have ended."""
    for loop in [loop for loop in ends if loop.is_closed()]:
        del ends[loop]


@lru_cache(maxsize=1024)
def hash_of(topic: str) -> str:
    """Return the short form of a topic that is sent."""
    return blake2b(topic.encode("utf-8", "replace"), digest_size=8).hexdigest()
