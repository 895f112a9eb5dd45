"""The connections of one process: made when needed, used for one statement, given back.

Every verb may be repeated, so a call outlives a lost connection, a restart and a failover of the
server: it is sent again until it is answered or its time is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.postgres import faults, inputs
from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.call import Row
from lamplighter.engines.postgres.connection import Connection, connect
from lamplighter.model.errors import StoreBusy, StoreClosed, StoreError, StoreUnreachable
from lamplighter.port import forks

_BACKOFF = Backoff(0.02, 1.0, spread=0.5)
_CLOSE_SECONDS = 5.0
_MOST_PUZZLES = 3

_TELL_TIME = "SELECT pg_catalog.set_config('lamplighter.now', %s, true)"

log = logging.getLogger("lamplighter.postgres")


class Pools:
    """One pool per event loop, because a connection is read in the loop that waits for it."""

    def __init__(
        self, address: Address, deadline: float, clock_ms: Callable[[], int] | None
    ) -> None:
        self.schema = address.schema
        self._address = address
        self._deadline = deadline
        self._clock_ms = clock_ms
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._closed = False

    def function(self, name: str) -> str:
        """Return the full, quoted name of a function or table of the store."""
        return f'"{self.schema}"."{name}"'

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
        patience: float | None = None,
    ) -> list[Row]:
        """Run one statement and fetch all it answers, within ``patience`` or the deadline."""
        pool = self._pools.get(asyncio.get_running_loop()) or self._new()
        return await pool.rows(
            statement, parameters, urgent=urgent, instead=instead, patience=patience
        )

    async def close(self) -> None:
        """Let calls under way end, then let go of all connections."""
        self._closed = True
        loop = asyncio.get_running_loop()
        for home, pool in list(self._pools.items()):
            await pool.close(wait=home is loop)
        self._pools.clear()

    def _new(self) -> Pool:
        if self._closed:
            raise _closed(self._address)
        for loop in [loop for loop in self._pools if loop.is_closed()]:
            self._pools.pop(loop).let_go()
        pool = Pool(self._address, self._deadline, self._clock_ms)
        self._pools[asyncio.get_running_loop()] = pool
        return pool


class _Lane:
    """Some connections that are given to whoever comes first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.gate = asyncio.Semaphore(size)
        self.idle: list[Connection] = []


class _Story:
    """How far a call has come, for the one who has to say why it took too long."""

    __slots__ = ("error", "stage")

    def __init__(self) -> None:
        self.stage = "waiting"
        self.error: psycopg.Error | None = None


class Pool:
    """The connections of one event loop."""

    def __init__(
        self, address: Address, deadline: float, clock_ms: Callable[[], int] | None = None
    ) -> None:
        self._address = address
        self._deadline = deadline
        self._clock_ms = clock_ms
        # One of all is for signs of life: a busy store must not look like a dead worker.
        self._urgent = _Lane(1)
        self._common = _Lane(address.pool - 1 - int(address.listen))
        self._open: set[Connection] = set()
        self._closed = False
        self._forked = False
        forks.watch(self)

    async def rows(
        self,
        statement: str,
        parameters: Sequence[object] = (),
        *,
        urgent: bool = False,
        instead: str | None = None,
        patience: float | None = None,
    ) -> list[Row]:
        """Run one statement and fetch all it answers."""
        self._check()
        seconds = self._deadline if patience is None else patience
        lane = self._urgent if urgent else self._common
        story = _Story()
        try:
            async with asyncio.timeout(seconds):
                return await self._until_answered(lane, statement, parameters, story, instead)
        except TimeoutError as error:
            raise self._too_late(story, lane, seconds) from (story.error or error)

    async def close(self, *, wait: bool = True) -> None:
        """Let calls under way end, if their loop still runs, and let go of all connections."""
        self._closed = True
        if wait and not self._forked:
            try:
                async with asyncio.timeout(_CLOSE_SECONDS):
                    for lane in (self._common, self._urgent):
                        for _ in range(lane.size):
                            await lane.gate.acquire()
            except TimeoutError:
                pass  # whoever still waits for the server is told that the connection is gone
        self.let_go()

    def let_go(self) -> None:
        """Close all connections now."""
        self._closed = True
        for connection in self._open:
            connection.let_go()
        self._open.clear()
        self._common.idle.clear()
        self._urgent.idle.clear()

    def forget(self) -> list[object]:
        """Abandon all connections without touching them: they are the parent process's."""
        self._forked = True
        inherited: list[object] = list(self._open)
        self._open = set()
        self._common.idle, self._urgent.idle = [], []
        return inherited

    async def _until_answered(
        self,
        lane: _Lane,
        statement: str,
        parameters: Sequence[object],
        story: _Story,
        instead: str | None,
    ) -> list[Row]:
        tries = puzzles = 0
        while True:
            try:
                return await self._once(lane, statement, parameters, story)
            except UnicodeEncodeError as error:
                raise inputs.unwritable(error) from error
            except psycopg.Error as error:
                puzzles += faults.puzzles(error)
                story.error, story.stage = error, "pausing"
                if puzzles >= _MOST_PUZZLES or not faults.may_pass(error):
                    refused = inputs.refusal(error, statement, parameters)
                    raise refused or faults.explain(error, self._address.shown) from error
                if isinstance(error, psycopg.errors.LockNotAvailable):
                    statement = instead or statement
            # An idle connection may have been cut long ago: a new one is tried at once.
            await runtime.sleep(_BACKOFF.after(tries))
            tries += 1
            self._check()

    async def _once(
        self, lane: _Lane, statement: str, parameters: Sequence[object], story: _Story
    ) -> list[Row]:
        story.stage = "waiting"
        async with lane.gate:
            connection = await self._take(lane, story)
            story.stage = "running"
            try:
                rows = await self._run(connection, statement, parameters)
            except psycopg.Error as error:
                if connection.closed or faults.breaks(error):
                    # What cut one connection has most likely cut the others.
                    self._drop(connection, *lane.idle)
                    lane.idle.clear()
                else:
                    lane.idle.append(connection)
                self._check_kept(connection)
                raise
            except UnicodeEncodeError:
                lane.idle.append(connection)  # nothing was sent
                raise
            except BaseException:
                self._abort(connection)
                raise
            if self._closed:
                self._drop(connection)
            else:
                lane.idle.append(connection)
            self._check_kept(connection)
            return rows

    async def _take(self, lane: _Lane, story: _Story) -> Connection:
        while lane.idle:
            connection = lane.idle.pop()
            if not connection.closed:
                return connection
            self._open.discard(connection)
        story.stage = "connecting"
        connection = await connect(self._address)
        self._open.add(connection)
        return connection

    async def _run(
        self, connection: Connection, statement: str, parameters: Sequence[object]
    ) -> list[Row]:
        cursor = connection.cursor(binary=True)
        # Statements are our own: what is not written in a verb's file is a checked name.
        text: Any = statement
        if self._clock_ms is None:
            await cursor.execute(text, parameters)
            return await _fetched(cursor)
        now = str(self._clock_ms())
        async with connection.transaction():
            await connection.execute(_TELL_TIME, (now,))
            await cursor.execute(text, parameters)
            return await _fetched(cursor)

    def _check_kept(self, connection: Connection) -> None:
        """Refuse an answer that a failover may take back: the wait for a standby was cut short."""
        said = connection.doubts.taken()
        if said is None:
            return
        where = self._address.shown
        log.warning("a commit at %s may not be replicated: %s", where, said)
        raise StoreBusy(
            f"what was asked at {where} is done, but may not be replicated: {said}",
            hint="see that the synchronous standby answers, then repeat what was asked, which is "
            "safe; until it has caught up, a failover to it loses this",
            value=where,
        )

    def _drop(self, *connections: Connection) -> None:
        for connection in connections:
            self._open.discard(connection)
            connection.let_go()

    def _abort(self, connection: Connection) -> None:
        """Let go of a connection in the middle of a call."""
        self._open.discard(connection)
        if connection.closed:
            connection.let_go()
        elif not self._forked:
            runtime.spawn(connection.abort(), name="postgres-abort")

    def _check(self) -> None:
        if self._forked:
            raise forks.refusal(self._address.shown)
        if self._closed:
            raise _closed(self._address)

    def _too_late(self, story: _Story, lane: _Lane, seconds: float) -> StoreError:
        where = self._address.shown
        if story.stage == "waiting":
            return StoreBusy(
                f"all {lane.size} connections to {where} were busy for {seconds:g} s",
                hint="look for slow or blocked statements in pg_stat_activity, or give the "
                "process more connections with pool=… in the url",
                value=where,
            )
        if story.error is not None:
            return faults.explain(story.error, where)
        if story.stage == "connecting":
            return StoreUnreachable(
                f"the PostgreSQL server at {where} did not accept a connection in {seconds:g} s",
                hint="check host and port in the url, and that nothing blocks the way",
                value=where,
            )
        return StoreBusy(
            f"the PostgreSQL server at {where} gave no answer in {seconds:g} s",
            hint="look for locks and long transactions in pg_stat_activity, and at the network; "
            "what was asked may be repeated safely",
            value=where,
        )


async def _fetched(cursor: psycopg.AsyncCursor[Row]) -> list[Row]:
    """Return the rows, if there can be any. To ask for their description would make it first."""
    result = cursor.pgresult
    return await cursor.fetchall() if result is not None and result.nfields else []


def _closed(address: Address) -> StoreClosed:
    return StoreClosed(
        f"the store `{address.shown}` is not open",
        hint="call `await engine.open()` first",
        value=address.shown,
    )
