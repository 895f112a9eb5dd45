"""The listening end of wake-ups: a connection of its own, on which the server lets us wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.ahead import Ahead
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.connection import Connection, connect
from lamplighter.engines.redis.faults import Lost
from lamplighter.engines.redis.keys import shard_prefix
from lamplighter.engines.redis.wire import ProtocolError, ReplyError, pack
from lamplighter.model.errors import LamplighterError, StoreError
from lamplighter.port import forks

_BLOCK_SECONDS = 20
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 2.0
_HUSH_SECONDS = 1.0
_BACKOFF = Backoff(0.1, 5.0, spread=0.5)
_NEVER = "-"
_DESCRIBED_SECONDS = 1200.0
"""So often a profile is described again: the store forgets it after an hour."""
_MOST_PROFILES = 100
_ANY_TYPE = ("",)

Types = tuple[str, ...] | None


class Ear:
    """Hears for one event loop.

    What is new on a topic has a number. A wait first asks for the number and leaves its name with
    the store, in one step, so that nothing is missed; then it is told through its own list. The
    name is left among those who wait for the same topics and can run the same types: their profile.
    """

    def __init__(self, address: Address, call: Call) -> None:
        self._address = address
        self._call = call
        self._name = f"{runtime.random_bits(64):016x}"
        self._list = f"{shard_prefix(address.prefix, 0)}wake:{self._name}"
        self._seen: dict[str, str] = {}
        """The number of the last news of each topic that somebody here was told."""
        self._unheard: dict[str, str] = {}
        """Words that came when nobody waited for them, and their numbers."""
        self._waiting: dict[asyncio.Future[None], frozenset[str]] = {}
        self._profiles: dict[tuple[frozenset[str], Types], _Profile] = {}
        self._ahead: Ahead | None = None
        """A claim that waits at the server, or goes there with the next call that waits."""
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._failures = 0
        """Connections that have broken since one has worked."""
        self._forked = False
        forks.watch(self)

    async def hear(
        self, topics: frozenset[str], types: Types, seconds: float, ahead: Ahead | None = None
    ) -> bool:
        """Wait until one of these topics has news, or the time is over.

        News of jobs is for those who can run them, by ``types``; None is all. The claim ``ahead``
        goes along, if no other one is under way: it is made with the news, and its answer ends the
        wait, too.
        """
        if self._forked:
            raise forks.refusal(self._address.shown)
        if self._was_told(topics):
            return True
        future = asyncio.get_running_loop().create_future()
        if ahead is not None and (self._ahead is None or self._ahead.is_answered):
            self._ahead = ahead
            ahead.wakes(future)
        self._waiting[future] = topics
        self._wanted.set()
        if self._task is None:
            self._task = runtime.spawn(self._listen(), name="redis-listen")
        end = runtime.monotonic() + seconds
        profile = self._profile(topics, types)
        profile.waiting += 1
        try:
            await self._look(profile, seconds)
            async with asyncio.timeout(max(0.0, end - runtime.monotonic())):
                await future
        except TimeoutError:
            return future.done() and not future.cancelled()
        except asyncio.CancelledError:
            if profile.waiting == 1:
                profile.hushing = runtime.spawn(self._hush(profile), name="redis-hush")
            raise
        finally:
            profile.waiting -= 1
            del self._waiting[future]
        return True

    def saw(self, topics: Sequence[str], numbers: Sequence[bytes]) -> None:
        """Note news that need not be told: what they were about is taken, or somebody else's."""
        for topic, number in zip(topics, numbers, strict=True):
            if topic not in self._seen or self._is_news(topic, number.decode()):
                self._seen[topic] = number.decode()

    async def answer(self, ahead: Ahead) -> Any:
        """Return what a claim was answered; one that still waits at the server is made now.

        None: it was not sent and will not be, or its answer is lost, and it takes nothing from now
        on. Raises what a call raises, if the server cannot be told.
        """
        if ahead.is_sent and not ahead.is_answered:
            await self._let_through(ahead, "")
        reply = ahead.reply
        if reply is None and ahead.is_sent:
            await self._let_through(ahead, ahead.nonce)
        if self._ahead is ahead:
            self._ahead = None
        return reply

    async def withdraw(self, nonce: str) -> None:
        """See to it that a claim takes nothing from now on, if it waits at the server."""
        ahead = self._ahead
        if ahead is not None and ahead.nonce == nonce:
            if ahead.is_sent and not ahead.is_answered:
                await self._let_through(ahead, nonce)
            self._ahead = None

    async def _let_through(self, ahead: Ahead, used_nonce: str) -> None:
        await self._call.run("withdraw", (self._name, used_nonce))
        await ahead.answered()

    async def close(self, *, wait: bool = True) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        if task is not None and wait:
            task.cancel()
            await asyncio.wait({task})
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.let_go()

    def forget(self) -> list[object]:
        """Abandon the connection without touching it: it is the parent process's."""
        self._forked = True
        inherited: list[object] = [self._connection, self._task, dict(self._waiting)]
        self._connection = self._task = None
        self._waiting = {}
        return inherited

    def _profile(self, topics: frozenset[str], types: Types) -> _Profile:
        profile = self._profiles.get((topics, types))
        if profile is None:
            if len(self._profiles) >= _MOST_PROFILES:
                self._profiles.clear()
            profile = self._profiles[topics, types] = _Profile(topics, types)
        return profile

    async def _look(self, profile: _Profile, seconds: float) -> None:
        """Ask what is new, and leave our name; without an answer, a wait is only a wait."""
        try:
            # The first look must not be missed, however short the wait.
            async with asyncio.timeout(max(seconds, _LOOK_SECONDS)):
                if profile.hushing is not None:
                    # Else it could take back the name that is left now.
                    await asyncio.wait({profile.hushing})
                    profile.hushing = None
                numbers = await self._ask(profile, seconds)
                if numbers is None:
                    profile.described = None
                    numbers = await self._ask(profile, seconds) or []
        except (StoreError, TimeoutError):
            return
        for topic, number in zip(profile.topics, numbers, strict=False):
            self._told(topic, number.decode())

    async def _ask(self, profile: _Profile, seconds: float) -> list[bytes] | None:
        """Return the numbers of the topics; None where the store does not know the profile."""
        args: list[str | int] = [self._name, int(seconds * 1000), profile.name]
        now = runtime.monotonic()
        if profile.described is None or now >= profile.described + _DESCRIBED_SECONDS:
            args += (len(profile.types), *profile.types)
            profile.described = now
        else:
            args.append(-1)
        for topic in profile.topics:
            args += (topic, self._seen.get(topic, _NEVER))
        known, *numbers = await self._call.run("listen", args)
        return numbers if known == b"known" else None

    async def _hush(self, profile: _Profile) -> None:
        """Take our name back: who is told of a job instead of somebody else must be there."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_HUSH_SECONDS):
                await self._call.run("hush", (self._name, profile.name))

    def _told(self, topic: str, number: str) -> None:
        """Wake everybody who waits for a topic, if this is news."""
        if topic not in self._seen:
            self._seen[topic] = number
            return
        if not self._is_news(topic, number):
            return
        self._seen[topic] = number
        for future, topics in self._waiting.items():
            if topic in topics and not future.done():
                future.set_result(None)

    async def _listen(self) -> None:
        """Listen while anybody waits, over as many connections as that takes."""
        first = True
        while True:
            await self._wanted.wait()
            try:
                connection = self._connection = await connect(
                    self._address,
                    _BLOCK_SECONDS + _ANSWER_SECONDS,
                    _BLOCK_SECONDS + _ANSWER_SECONDS,
                )
                if not first:
                    # Nobody knows what was said meanwhile, or whether the server has lost some of
                    # it, and counts from an earlier number.
                    self._seen = dict.fromkeys(self._seen, "")
                    self._wake_all()
                first = False
                await self._hold_ear(connection)
            except (LamplighterError, Lost, ProtocolError, ReplyError, OSError):
                pass  # OSError: also a server that did not answer in time
            finally:
                self._drop()
            self._failures += 1
            await runtime.sleep(_BACKOFF.after(self._failures))

    async def _hold_ear(self, connection: Connection) -> None:
        """Take what is told, until the connection breaks."""
        while not connection.closed:
            await self._wanted.wait()
            word = await self._word(connection)
            self._failures = 0
            if word is not None:
                number, _, topic = word[1].decode().partition(" ")
                self._arrived(topic, number)
            # Who was just woken is still among them, and comes back with another claim.
            if all(future.done() for future in self._waiting):
                self._wanted.clear()

    async def _word(self, connection: Connection) -> Any:
        """Wait for a word, with a claim behind it if there is one to be sent."""
        ahead = self._ahead
        if ahead is None or ahead.is_sent:
            return await connection.command("BLPOP", self._list, _BLOCK_SECONDS)
        told = connection.ask(pack(("BLPOP", self._list, ahead.seconds)))
        ahead.send(connection)
        word = await told
        if isinstance(word, ReplyError):
            raise word
        await ahead.answered()
        return word

    def _arrived(self, topic: str, number: str) -> None:
        """Tell what was left in our list, unless a look has found it before."""
        if any(topic in topics for topics in self._waiting.values()):
            self._seen.setdefault(topic, "")
            self._told(topic, number)
        else:
            # Perhaps nobody else was told, and no number shows it: the next wait is.
            self._unheard[topic] = number

    def _was_told(self, topics: frozenset[str]) -> bool:
        """Tell whether words of these topics came when nobody waited, unless they are known."""
        came = [(topic, self._unheard.pop(topic)) for topic in topics & self._unheard.keys()]
        fresh = [(topic, number) for topic, number in came if self._is_news(topic, number)]
        self._seen.update(fresh)
        return bool(fresh)

    def _is_news(self, topic: str, number: str) -> bool:
        before = self._seen.get(topic, "")
        return number != "" and (before == "" or int(number) > int(before))

    def _wake_all(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.let_go()


class _Profile:
    """Topics and types that are waited for together."""

    def __init__(self, topics: frozenset[str], types: Types) -> None:
        self.topics = sorted(topics)
        self.types = _ANY_TYPE if types is None else types
        parts = "\0".join([*self.topics, "", *sorted(self.types)])
        self.name = blake2b(parts.encode("utf-8", "replace"), digest_size=8).hexdigest()
        self.described: float | None = None
        """When the store was last told what it is; None: it does not know it."""
        self.waiting = 0
        """How many wait so here, under one name."""
        self.hushing: asyncio.Task[None] | None = None
        """Takes the name back, after a wait that was given up."""
