"""A server connection of the pooler, lent to one client for one transaction at a time.

PostgreSQL's own library opens it, so that every way to log in works. Then the bytes of the clients
go over a copy of its socket, and the library gets the word again only between two transactions.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

from psycopg import conninfo, pq
from psycopg.pq import abc

from tests.proxies.leaks import STATE, Leak
from tests.proxies.messages import READY, Frames, message, words

# What the server tells every client about itself. The library gives them one by one only.
REPORTED = (
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "is_superuser",
    "session_authorization",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
    "default_transaction_read_only",
    "in_hot_standby",
    "scram_iterations",
    "search_path",
)
_REMEMBERED = 12
_LONGEST_STATEMENT = 200


class SessionFailed(Exception):
    """The server did not give a connection; says why."""


class Borrower(Protocol):
    """Who has a session for a while."""

    def heard(self, data: bytes) -> None:
        """Take what the server says."""
        ...

    def answered(self, status: int) -> None:
        """A request was answered in full; ``status`` says whether a transaction is open."""
        ...

    def bereft(self) -> None:
        """The server connection is gone."""
        ...


class Session(asyncio.Protocol):
    """One server connection."""

    def __init__(self, connection: abc.PGconn, lost: Callable[["Session"], None]) -> None:
        self._connection = connection
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._frames = Frames()
        self._kept: set[str] = set()
        self._statements: deque[str] = deque(maxlen=_REMEMBERED)
        self.pid = connection.backend_pid
        self.borrower: Borrower | None = None
        self.uses = 0
        self.tainted = False
        """Not fit to be lent again: a transaction was left open, or a cancel may come late."""

    @property
    def closed(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        whole, found = self._frames.feed(data)
        borrower = self.borrower
        if borrower is None:
            return  # said unasked: whoever the pooler lends the session to would miss it too
        borrower.heard(whole)
        for kind, _, end in found:
            if kind == READY:
                borrower.answered(whole[end - 1])

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()
        self._lost(self)
        if self.borrower is not None:
            self.borrower.bereft()

    def write(self, data: bytes) -> None:
        """Send to the server."""
        if self._transport is not None:
            self._transport.write(data)

    def remember(self, statement: str) -> None:
        """Note what is run, for whoever has to find out who left something behind."""
        self._statements.append(" ".join(statement.split())[:_LONGEST_STATEMENT])

    def close(self) -> None:
        """Close; a transaction that is open is rolled back."""
        if self._transport is not None:
            self._transport.abort()
        self._connection.finish()

    async def cancel(self) -> None:
        """Ask the server to stop what it is doing here."""
        self.tainted = True
        if not self.closed:
            await asyncio.to_thread(self._connection.get_cancel().cancel)

    async def look(self) -> list[Leak]:
        """Give what this session keeps that it did not keep at the last look."""
        if self._transport is None:
            return []
        self._transport.pause_reading()
        try:
            result = await asyncio.to_thread(self._connection.exec_, STATE)
        finally:
            self._transport.resume_reading()
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise SessionFailed(self._connection.get_error_message())
        kept = {(result.get_value(row, 0) or b"").decode() for row in range(result.ntuples)}
        found = sorted(kept - self._kept)
        self._kept = kept
        statements = tuple(self._statements)
        self._statements.clear()
        return [Leak(self.pid, what, statements) for what in found]

    def welcome(self) -> bytes:
        """Give the messages by which a server introduces itself."""
        statuses = [(name, self._connection.parameter_status(name.encode())) for name in REPORTED]
        return b"".join(
            message(b"S", words(name, value.decode()))
            for name, value in statuses
            if value is not None
        )


async def open_session(
    url: str, parameters: dict[str, str], lost: Callable[[Session], None]
) -> Session:
    """Log in at the server with the parameters that a client has sent."""
    given = dict(parameters)
    plain = {
        "user": given.pop("user"),
        "dbname": given.pop("database"),
        # Bytes are carried as they are: nothing may be encrypted.
        "sslmode": "disable",
        "gssencmode": "disable",
    }
    named = {
        name: given.pop(name) for name in ("application_name", "client_encoding") & given.keys()
    }
    options = " ".join(f"-c {name}={_escaped(value)}" for name, value in given.items())
    text = conninfo.make_conninfo(url, **plain, **named, options=options)
    connection = await asyncio.to_thread(_connect, text)
    if connection.status != pq.ConnStatus.OK:
        reason = connection.get_error_message()
        connection.finish()
        raise SessionFailed(reason)
    copy = socket.socket(fileno=os.dup(connection.socket))
    loop = asyncio.get_running_loop()
    _, session = await loop.create_connection(lambda: Session(connection, lost), sock=copy)
    return session


def _connect(text: str) -> abc.PGconn:
    return pq.PGconn.connect(text.encode())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
