"""A client of the pooler: it believes that it talks to one server connection."""

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Protocol, cast

from tests.proxies.lender import Lender
from tests.proxies.messages import (
    CANCEL_REQUEST,
    ENDS_REQUEST,
    GSS_REQUEST,
    IDLE,
    OPENS_REQUEST,
    SSL_REQUEST,
    TERMINATE,
    VERSION_3,
    Frames,
    Opening,
    fatal,
    message,
    read_words,
    statement_of,
)
from tests.proxies.session import Session, SessionFailed

# The parameters a pooler of connections can keep apart for its clients; PgBouncer knows the same.
KNOWN = {
    "user",
    "database",
    "application_name",
    "client_encoding",
    "datestyle",
    "standard_conforming_strings",
    "timezone",
}


@dataclass(slots=True)
class Usage:
    """What one client has used."""

    transactions: int = 0
    pids: set[int] = field(default_factory=set[int])
    """The server's processes that it was given."""
    repeats: int = 0
    """How often it was given the same one twice in a row."""


class House(Protocol):
    """Where customers come from and go to."""

    def lender(self, parameters: dict[str, str]) -> Lender:
        """Give the lender for these parameters."""
        ...

    def came(self, customer: "Customer") -> None:
        """A client has connected."""
        ...

    def gone(self, customer: "Customer") -> None:
        """A client has left."""
        ...

    async def cancel(self, key: bytes) -> None:
        """Stop what the client with this key has asked for."""
        ...


class Customer(asyncio.Protocol):
    """One client, lent a session for each transaction."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._opening = Opening()
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self._lender: Lender | None = None
        self._task: asyncio.Task[None] | None = None
        self._session: Session | None = None
        self._last: Session | None = None
        self._unsent: list[bytes] = []
        self._statements: list[str] = []
        self._unanswered = 0
        self._unfinished = False
        """A request has begun, but its end has not come from the client yet."""
        self.key = b"\0" + secrets.token_bytes(7)
        """The number of a process, which is positive, and a secret."""
        self.usage = Usage()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._house.came(self)

    def data_received(self, data: bytes) -> None:
        if self._lender is not None:
            self._ask(data)
        else:
            self._opening.feed(data)
            if self._task is None:
                self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._session is not None and self._lender is not None:
            self._session.tainted = True  # in the middle of something
            self._lender.give_back(self._session)
            self._session = None
        self._house.gone(self)

    def heard(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def answered(self, status: int) -> None:
        self._unanswered -= 1
        if status == IDLE and self._unanswered == 0 and not self._unfinished:
            session, self._session = self._session, None
            if session is not None and self._lender is not None:
                self._lender.give_back(session)

    def bereft(self) -> None:
        self._session = None
        self.close()

    def close(self, words: bytes = b"") -> None:
        """Send the last words and close."""
        if self._transport is not None:
            self._transport.write(words)
            self._transport.close()

    async def cancel(self) -> None:
        """Stop what is being done for this client."""
        if self._session is not None:
            await self._session.cancel()

    def _begin(self) -> None:
        """Answer the packets of the beginning, in clear text and without a password."""
        while (packet := self._opening.next()) is not None:
            code, body = packet
            if code in (SSL_REQUEST, GSS_REQUEST):
                self.heard(b"N")
                continue
            loop = asyncio.get_running_loop()
            if code == CANCEL_REQUEST:
                self._task = loop.create_task(self._pass_on_cancel(body))
            elif code == VERSION_3:
                given = read_words(body)
                parameters = dict(zip(given[::2], given[1::2], strict=False))
                self._task = loop.create_task(self._welcome(parameters))
            else:
                self.close(fatal("08P01", f"protocol {code >> 16}.{code & 0xFFFF} is not known"))
            return

    async def _pass_on_cancel(self, key: bytes) -> None:
        try:
            await self._house.cancel(key)
        finally:
            self.close()

    async def _welcome(self, parameters: dict[str, str]) -> None:
        foreign = sorted(name for name in parameters if name.lower() not in KNOWN)
        if foreign:
            self.close(fatal("08P01", f"unsupported startup parameter: {', '.join(foreign)}"))
            return
        parameters.setdefault("database", parameters["user"])
        lender = self._house.lender(parameters)
        try:
            statuses = await lender.welcome()
        except SessionFailed as error:
            self.close(fatal("08006", f"the server gave no connection: {error}"))
            return
        key = message(b"K", self.key)
        self.heard(message(b"R", bytes(4)) + statuses + key + message(b"Z", b"I"))
        self._task, self._lender = None, lender
        self._ask(self._opening.rest)

    def _ask(self, data: bytes) -> None:
        whole, found = self._frames.feed(data)
        for kind, start, end in found:
            if kind == TERMINATE:
                self.close()
                return
            if kind in ENDS_REQUEST:
                self._unanswered += 1
                self._unfinished = False
            elif kind in OPENS_REQUEST:
                self._unfinished = True
            statement = statement_of(whole, kind, start, end)
            if statement is not None:
                self._statements.append(statement)
        if not whole:
            return
        self._unsent.append(whole)
        if self._session is not None:
            self._send(self._session)
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._borrow())

    async def _borrow(self) -> None:
        lender = self._lender
        if lender is None:
            return
        try:
            session = await lender.take(self._last)
        except SessionFailed as error:
            self.close(fatal("08006", f"the server gave no connection: {error}"))
            return
        finally:
            self._task = None
        if self._transport is None or self._transport.is_closing():
            lender.give_back(session)
            return
        session.borrower, self._session = self, session
        self._note(session)
        self._send(session)

    def _note(self, session: Session) -> None:
        self.usage.transactions += 1
        self.usage.repeats += session is self._last
        self.usage.pids.add(session.pid)
        self._last = session

    def _send(self, session: Session) -> None:
        for statement in self._statements:
            session.remember(statement)
        session.write(b"".join(self._unsent))
        self._statements.clear()
        self._unsent.clear()
