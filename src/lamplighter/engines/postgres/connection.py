"""One connection, set up the way all of them are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from psycopg import AsyncConnection, Error, waiting
from psycopg.abc import PQGen
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.postgres import faults, ids, refusal
from lamplighter.engines.postgres.address import Address

T = TypeVar("T")

_TICK_SECONDS = 60.0
_CANCEL_SECONDS = 2.0
_BACKOFF = Backoff(0.05, 1.0)
_GUARD = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)"
# Where the server says that it no longer waits for a standby: its words may be in any language.
_WAIT_FOR_STANDBY = "SyncRepWaitForLSN"


class Doubts:
    """What the server remarks about calls that it has answered as if all were well."""

    def __init__(self) -> None:
        self._unconfirmed: str | None = None

    def note(self, remark: Diagnostic) -> None:
        """Keep a remark that puts an answer in doubt."""
        if remark.source_function == _WAIT_FOR_STANDBY:
            self._unconfirmed = remark.message_primary or "no longer waiting for the standby"

    def taken(self) -> str | None:
        """Return what was said since the last time, if it means that a commit may get lost."""
        said, self._unconfirmed = self._unconfirmed, None
        return said


class Connection(AsyncConnection[TupleRow]):
    """A connection that lets a cancelled call go at once.

    The driver's own would first wait for the server to confirm, which a server that cannot be
    reached never does. Who cancels a call here must let go of the connection.
    """

    doubts: Doubts

    async def wait(
        self, gen: PQGen[T], interval: float = _TICK_SECONDS, timeout: float | None = None
    ) -> T:
        if timeout is None:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval)
        return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)

    def let_go(self) -> None:
        """Close now, without a word to anybody."""
        self.pgconn.finish()

    async def abort(self) -> None:
        """Close, and ask the server to stop what it is doing for us."""
        try:
            await self.cancel_safe(timeout=_CANCEL_SECONDS)
        except Error:
            pass  # it notices that nobody is there when it is done
        finally:
            self.let_go()

    def __del__(self, *_: object) -> None:
        """Close without a warning: a loop that ended may have left an `abort` undone.

        The driver closes what nobody holds any more, in the process that opened it.
        """


async def connect(address: Address) -> Connection:
    """Open a connection: each statement commits by itself, and nothing is kept in the session."""
    parameters: dict[str, Any] = dict(address.parameters)
    connection = await Connection.connect(autocommit=True, prepare_threshold=None, **parameters)
    ids.register(connection)
    connection.doubts = Doubts()
    connection.add_notice_handler(connection.doubts.note)
    return connection


@asynccontextmanager
async def guarded(connection: Connection) -> AsyncGenerator[None]:
    """Begin a transaction in which plain names mean PostgreSQL's own parts and nothing else.

    Under the search path of the session, somebody who may create functions in one of its schemas
    could put one in the way that fits better than what was meant, and is run with our rights.
    """
    async with connection.transaction():
        await connection.execute(_GUARD)
        yield


async def connect_patiently(address: Address, seconds: float) -> Connection:
    """Open a connection to a server that may just be starting; says why it could not be done."""
    end = runtime.monotonic() + seconds
    failures = 0
    while True:
        try:
            return await connect(address)
        except Error as raised:
            error = await refusal.with_code(raised, address)
            failures += 1
            pause = _BACKOFF.after(failures)
            if not faults.may_pass(error) or runtime.monotonic() + pause > end:
                raise faults.explain(error, address.shown) from raised
        await runtime.sleep(pause)
