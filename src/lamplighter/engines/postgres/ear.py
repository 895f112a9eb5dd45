"""The listening end of wake-ups: a connection of its own, opened when somebody first waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import psycopg
from psycopg import sql

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.connection import Connection, connect
from lamplighter.port import forks

_STARTING_SECONDS = 2.0
_PROBE_SECONDS = 0.5
_MOST_PROBES = 5
_QUIET_SECONDS = 60.0
_ANSWER_SECONDS = 10.0
_BACKOFF = Backoff(0.1, 5.0, spread=0.5)


class Ear:
    """Hears for one event loop."""

    def __init__(
        self,
        address: Address,
        channel: str,
        origin: str,
        probe: Callable[[], Awaitable[bool]],
    ) -> None:
        self._address = address
        self._channel = channel
        self._origin = origin
        self._probe = probe
        self._known: set[str] = set()
        """Topics that somebody has waited for: what is told of others need not be kept."""
        self._news: set[str] = set()
        """Topics told while nobody waited for them."""
        self._waiting: dict[asyncio.Future[None], frozenset[str]] = {}
        self._listening = asyncio.Event()
        self._proven = False
        """Something was heard on this connection."""
        self._deaf = False
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._failures = 0
        """Connections that have broken since one has worked."""
        self._forked = False
        forks.watch(self)

    async def hear(self, topics: frozenset[str], seconds: float) -> bool:
        """Wait until one of these topics is told, or the time is over."""
        if self._forked:
            raise forks.refusal(self._address.shown)
        self._known |= topics
        await self._started(seconds)
        found = self._news & topics
        if found:
            self._news -= found
            return True
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = topics
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            del self._waiting[future]
        return True

    def told(self, news: set[str]) -> None:
        """Wake everybody who waits for one of these; keep what nobody waits for."""
        heard: set[str] = set()
        for future, topics in self._waiting.items():
            if not topics.isdisjoint(news):
                heard |= topics
                if not future.done():
                    future.set_result(None)
        self._news |= (news & self._known) - heard

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
        inherited: list[object] = [self._connection, self._task]
        self._connection = self._task = None
        return inherited

    async def _started(self, seconds: float) -> None:
        """See to it that somebody listens before the first wait ends.

        What is told between two waits would else be missed for as long as a connection takes.
        """
        if not self._address.listen:
            return
        if self._task is None:
            self._task = runtime.spawn(self._listen(), name="postgres-listen")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(seconds, _STARTING_SECONDS)):
                    await self._listening.wait()

    async def _listen(self) -> None:
        """Listen for ever, over as many connections as that takes, unless nothing is ever heard."""
        first = True
        while not self._deaf:
            try:
                connection = self._connection = await connect(self._address)
                name = sql.Identifier(self._channel)
                await connection.execute(sql.SQL("LISTEN {}").format(name))
                self._listening.set()
                if not first:
                    self.told(set(self._known))  # nobody knows what was said meanwhile
                self._failures = 0
                await self._hold_ear(connection)
            except (psycopg.Error, OSError):
                pass  # OSError: also a server that did not answer in time
            finally:
                self._drop()
            first = False
            self._failures += 1
            await runtime.sleep(_BACKOFF.after(self._failures))

    async def _hold_ear(self, connection: Connection) -> None:
        """Hear what is told, until the connection breaks or turns out to be deaf."""
        self._proven = False
        probes = 0
        while True:
            async for note in connection.notifies(
                timeout=_QUIET_SECONDS if self._proven else _PROBE_SECONDS
            ):
                self._arrived(note.payload)
            if self._proven:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await connection.execute("SELECT 1")
            elif probes >= _MOST_PROBES:
                self._deaf = True
                return
            else:
                probes += await self._probe()

    def _arrived(self, payload: str) -> None:
        self._proven = True
        origin, _, news = payload.partition(":")
        if origin != self._origin:
            self.told(set(self._known) if news == "*" else {news})

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.let_go()
