"""The connections of one process, and how a script is run on them until it is answered.

Every verb may be repeated, so a call outlives a lost connection, a restart and a failover of the
server: it is sent again until it is answered or its time is over. It does not outlive the store: on
a server without it, scripts do nothing, and calls are refused until there is a store again. New
jobs are only sent where there is room for them, and where replicas are to have a write, it is
answered when they do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.redis import admission, faults, installer, scripts
from lamplighter.engines.redis.address import Address, Durability
from lamplighter.engines.redis.admission import Admission
from lamplighter.engines.redis.call import Argument
from lamplighter.engines.redis.connection import Connection, connect
from lamplighter.engines.redis.faults import Lost
from lamplighter.engines.redis.keys import mark_key, shard_prefix
from lamplighter.engines.redis.replication import Replication
from lamplighter.engines.redis.scripts import Script
from lamplighter.engines.redis.server import Memory
from lamplighter.engines.redis.wire import ProtocolError, ReplyError, pack
from lamplighter.model.errors import StoreBusy, StoreClosed, StoreError
from lamplighter.port import forks

log = logging.getLogger(__name__)

_BACKOFF = Backoff(0.02, 1.0, spread=0.5)
_CLOSE_SECONDS = 5.0
_SILENCE_SECONDS = 10.0
_NEW = frozenset({"submit", "fire", "trigger", "put_schedules"})
"""What needs room for something new."""
_OPERATED = frozenset({"change", "hold_schedules", "delete_schedules"})
_LASTING = _NEW | _OPERATED | frozenset({"settle", "confirm"})
"""What replicas must have, if the address asks for that, before it is answered: no failover may
take back what somebody was told."""


class Transport:
    """Runs scripts, on connections of their own for each event loop.

    A socket is read in the loop that waits for it.
    """

    def __init__(
        self, address: Address, deadline: float, clock_ms: Callable[[], int] | None = None
    ) -> None:
        self.shards = 1
        self._address = address
        self._deadline = deadline
        self._clock_ms = clock_ms
        self._mark = ""
        """Of the store that is used; empty until it is known."""
        self._places: list[tuple[bytes, bytes]] = []
        """Per shard the prefix of its keys, and the key of the mark."""
        self.divide(1)
        self._lines: dict[asyncio.AbstractEventLoop, tuple[_Line, _Line]] = {}
        self.replicated = address.durability is Durability.REPLICATED
        self._lasting = _LASTING if self.replicated else frozenset[str]()
        self._admission: Admission | None = None
        self._closed = False
        self._forked = False
        forks.watch(self)

    def divide(self, shards: int, mark: str = "") -> None:
        """Say how many shards the store has, and its mark; without one, the first call finds it."""
        self.shards, self._mark = shards, mark
        prefix = self._address.prefix
        self._places = [
            (shard_prefix(prefix, n).encode(), mark_key(prefix, n, mark).encode())
            for n in range(shards)
        ]

    def watch(self, memory: Memory) -> None:
        """Say what the server's memory is; it is looked at from now on."""
        self._admission = Admission(self._address.shown, memory)

    async def run(
        self,
        script: str,
        args: Sequence[Argument],
        *,
        shard: int = 0,
        urgent: bool = False,
    ) -> Any:
        """Run a script on a shard; see `Call`."""
        wanted = scripts.script(script)
        now = b"" if self._clock_ms is None else b"%d" % self._clock_ms()
        words = (*self._places[shard], now, *args)
        packed = pack((b"EVALSHA", wanted.sha, b"2", *words))
        line = self._line(urgent)
        began = runtime.monotonic()
        if self._admission is not None and script in _NEW:
            await self._admit(self._admission, line)
        if script in self._lasting:
            request = _Request(packed, wanted, words, shard, lasting=True)
            return await self._persist(line, request, began)
        connection = line.connection
        if connection is not None and not connection.closed:
            try:
                reply = await connection.ask(packed)
            except (Lost, ProtocolError, ReplyError) as error:
                reply = error
            if not isinstance(reply, Exception):
                return reply
            return await self._persist(line, _Request(packed, wanted, words, shard), began, reply)
        return await self._persist(line, _Request(packed, wanted, words, shard), began)

    def packed(self, script: str, args: Sequence[Argument]) -> bytes | None:
        """Return a call of a script on the first shard as it is sent, if it may be sent later.

        Where tests tell the store what time it is, it may not.
        """
        if self._clock_ms is not None:
            return None
        wanted = scripts.script(script)
        return pack((b"EVALSHA", wanted.sha, b"2", *self._places[0], b"", *args))

    async def command(self, *words: Argument) -> Any:
        """Run one command that may be repeated."""
        line = self._line(urgent=False)
        return await self._persist(line, _Request(pack(words)), runtime.monotonic())

    async def close(self) -> None:
        """Let calls under way end, then let go of all connections."""
        self._closed = True
        here = asyncio.get_running_loop()
        for home, lines in list(self._lines.items()):
            if self._forked:
                break
            for line in lines:
                if home is here and line.connection is not None:
                    await line.connection.drain(_CLOSE_SECONDS)
                _let_go(home, here, line)
        self._lines.clear()

    def forget(self) -> list[object]:
        """Abandon all connections without touching them: they are the parent process's."""
        self._forked = True
        inherited: list[object] = [line for lines in self._lines.values() for line in lines]
        self._lines = {}
        return inherited

    def check(self) -> None:
        """Refuse to work where that would do harm."""
        if self._forked:
            raise forks.refusal(self._address.shown)
        if self._closed:
            raise StoreClosed(
                f"the store `{self._address.shown}` is not open",
                hint="call `await engine.open()` first",
                value=self._address.shown,
            )

    # ── a call ───────────────────────────────────────────────────────────────────────────────

    def _line(self, urgent: bool) -> _Line:  # noqa: FBT001 - see `run`
        if self._closed or self._forked:
            self.check()
        lines = self._lines.get(asyncio.get_running_loop()) or self._new()
        return lines[urgent]

    def _new(self) -> tuple[_Line, _Line]:
        here = asyncio.get_running_loop()
        for loop in [loop for loop in self._lines if loop.is_closed()]:
            for line in self._lines.pop(loop):
                _let_go(loop, here, line)
        # One is for signs of life: a long answer to others must not look like a dead worker.
        common = _Line(self._address, self._deadline)
        urgent = _Line(self._address, self._deadline)
        self._lines[here] = (common, urgent)
        return common, urgent

    async def _admit(self, gate: Admission, line: _Line) -> None:
        """Refuse new jobs where there is no room for them."""
        if gate.due():
            connection = line.connection
            if gate.full or connection is None or connection.closed:
                gate.note(await self.command("INFO", "memory"))
            else:
                connection.ask(admission.ASK).add_done_callback(gate.noted)
        gate.check()

    async def _persist(
        self, line: _Line, request: _Request, began: float, last: Exception | None = None
    ) -> Any:
        """Send a call again and again, until it is answered or its time is over.

        ``last`` is what a first try came to.
        """
        tries = 0
        try:
            async with asyncio.timeout(began + self._deadline - runtime.monotonic()):
                while True:
                    is_lost = last is not None and faults.is_lost(last)
                    if last is not None and not is_lost and not request.taught(last):
                        await self._rest(line, last, tries)
                        tries += 1
                    try:
                        if is_lost:
                            await self._find_store(line)
                            request.move(self._places[request.shard])
                        place = self._places[0] if request.lasting else None
                        reply = await line.ask(request.packed, confirm=place)
                    except (Lost, ProtocolError, ReplyError, OSError) as error:
                        reply = error
                    if not isinstance(reply, Exception):
                        return reply
                    last = reply
        except TimeoutError as error:
            raise self._too_late(line, last) from (last or error)

    async def _find_store(self, line: _Line) -> None:
        """Use the store that is there now in place of the one that was; raise if there is none."""
        before = self._mark
        state = await installer.known(await line.connected(), self._address)
        if not state.version:
            if not self._address.recreate:
                raise faults.gone(self._address)
            _, state, _ = await installer.prepare(
                self._address, self._deadline, clock_ms=self._clock_ms
            )
        if state.shards != self.shards:
            raise faults.redivided(self._address, self.shards, state.shards)
        if self._mark != before or self._mark == state.mark:
            return  # another call has found it
        self.divide(state.shards, state.mark)
        if before:
            log.warning("%s; another one is in its place", faults.gone(self._address).cause)

    async def _rest(self, line: _Line, error: Exception, tries: int) -> None:
        """Wait before the next try, if there is to be one."""
        if not faults.may_pass(error):
            raise faults.explain(error, self._address) from error
        if isinstance(error, ReplyError) and faults.breaks(error):
            line.drop()
        # An idle connection may have been cut long ago: a new one is tried at once.
        await runtime.sleep(_BACKOFF.after(tries + isinstance(error, ReplyError)))
        self.check()

    def _too_late(self, line: _Line, last: Exception | None) -> StoreError:
        where = self._address.shown
        if last is not None and not isinstance(last, Lost):
            return faults.explain(last, self._address)
        if last is None and not line.is_connected:
            return faults.silent(self._address, self._deadline)
        return StoreBusy(
            f"the Redis server at {where} gave no answer in {self._deadline:g} s"
            + (f": {last}" if last is not None else ""),
            hint="look at its load, SLOWLOG and its log, and at the network; what was asked may be "
            "repeated safely",
            value=where,
        )


class _Request:
    """What is sent: the name of a script at first, its text to a server that does not know it."""

    __slots__ = ("_script", "_words", "lasting", "packed", "shard")

    def __init__(
        self,
        packed: bytes,
        script: Script | None = None,
        words: tuple[Argument, ...] = (),
        shard: int = 0,
        *,
        lasting: bool = False,
    ) -> None:
        self.packed = packed
        self.shard = shard
        self.lasting = lasting
        self._script = script
        self._words = words

    def taught(self, error: Exception) -> bool:
        """Send the text from now on, if that is what the server lacks."""
        unknown = isinstance(error, ReplyError) and faults.code_of(error) == "NOSCRIPT"
        if unknown and self._script is not None:
            self.packed = pack((b"EVAL", self._script.text, b"2", *self._words))
        return unknown and self._script is not None

    def move(self, place: tuple[bytes, bytes]) -> None:
        """Go to the store that is there now."""
        if self._script is not None:
            self._words = (*place, *self._words[len(place) :])
            self.packed = pack((b"EVALSHA", self._script.sha, b"2", *self._words))


class _Line:
    """One connection at a time, made anew when it is lost. Calls share it."""

    def __init__(self, address: Address, deadline: float) -> None:
        self.connection: Connection | None = None
        self._address = address
        self._deadline = deadline
        # A server that says nothing for so long may be gone, and another one be in its place.
        self._silence = min(_SILENCE_SECONDS, deadline / 3)
        self._gate = asyncio.Lock()
        self._replication: Replication | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection that may work."""
        return self.connection is not None and not self.connection.closed

    async def ask(self, packed: bytes, *, confirm: tuple[bytes, bytes] | None = None) -> Any:
        """Send a packed command on a connection that works; gives what the server says.

        With ``confirm``, the place of a shard, it is answered when the replicas have it.
        """
        connection = await self.connected()
        if confirm is not None:
            return await self._ask_all(connection, packed, confirm)
        return await connection.ask(packed)

    async def connected(self) -> Connection:
        """Return a connection that works."""
        connection = self.connection
        if connection is None or connection.closed:
            async with self._gate:
                connection = self.connection
                if connection is None or connection.closed:
                    connection = self.connection = await self._connect()
        return connection

    async def _ask_all(
        self, connection: Connection, packed: bytes, place: tuple[bytes, bytes]
    ) -> Any:
        replication = self._replication
        if replication is None or replication.connection is not connection:
            replication = Replication(connection, self._address, self._silence / 2)
            self._replication = replication
        answer = connection.ask(packed)
        confirmed = replication.confirmed(place)
        reply = await answer
        if isinstance(reply, ReplyError):
            return reply
        count = await asyncio.shield(confirmed)
        if isinstance(count, ReplyError):
            return count
        replication.check(count)
        return reply

    def drop(self) -> None:
        """Use another connection from now on."""
        if self.connection is not None:
            self.connection.let_go()

    async def _connect(self) -> Connection:
        try:
            return await connect(self._address, self._deadline, self._silence)
        except TimeoutError as error:
            raise Lost("it did not accept a connection in time") from error


def _let_go(home: asyncio.AbstractEventLoop, here: asyncio.AbstractEventLoop, line: _Line) -> None:
    """Close the connection of a loop, in that loop if it runs elsewhere."""
    if home is here or home.is_closed():
        line.drop()
        return
    try:
        home.call_soon_threadsafe(line.drop)
    except RuntimeError:  # it was closed meanwhile
        line.drop()
