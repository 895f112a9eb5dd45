"""One connection: many calls may be under way on it, and are answered in order.

It reads and writes its socket itself and lets a C library pack and parse, because that is what a
job costs most here. A connection that has lost a word is never used again: everybody who waits
for it learns that the fate of the call is unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from lamplighter import runtime
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.call import Argument
from lamplighter.engines.redis.faults import Lost
from lamplighter.engines.redis.wire import MORE, ProtocolError, ReplyError, pack, parser
from lamplighter.model.errors import InvalidUrl

_CHUNK = 1 << 18
_JOINED, _AT_ONCE = 1 << 16, 1 << 12
"""Bytes below which a text is sent with the next one, and from which it does not wait for it."""
_CONNECT_SECONDS = 5.0
_AGAIN = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}

Pending = tuple["asyncio.Future[Any]", float]


class Connection:
    """A socket, what is to be sent on it, and who waits for an answer.

    ``patience`` is the longest a call may take, ``silence`` the longest the server may say nothing
    while somebody waits.
    """

    def __init__(self, channel: socket.socket, patience: float, silence: float) -> None:
        self.closed = False
        self._socket = channel
        self._tls = isinstance(channel, ssl.SSLSocket)
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self._silence = silence
        self._parser = parser()
        self._buffer = bytearray(_CHUNK)
        self._pending: deque[Pending] = deque()
        self._outgoing: deque[bytes | memoryview] = deque()
        self._writing = False
        self._heard = 0.0
        self._watch: asyncio.TimerHandle | None = None
        # Also when its loop has ended without a word: quietly, and before the socket complains.
        self._close = weakref.finalize(self, channel.close)
        self._close.atexit = False
        self._loop.add_reader(channel, self._readable)

    def ask(self, packed: bytes) -> asyncio.Future[Any]:
        """Send a packed command; the future gets the reply, an error of the server included.

        It raises Lost when the connection ends before. Whoever cancels it only does not listen.
        """
        future = self._loop.create_future()
        if self.closed:
            future.set_exception(Lost("the connection is closed"))
            return future
        now = runtime.monotonic()
        if not self._pending:
            self._heard = now
            if self._watch is None:
                self._watch = self._loop.call_later(self._silence, self._look)
        self._pending.append((future, now))
        self._send(packed)
        return future

    async def command(self, *words: Argument) -> Any:
        """Run one command; an error of the server is raised as ReplyError."""
        reply = await self.ask(pack(words))
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    async def drain(self, seconds: float) -> None:
        """Wait until all calls under way are answered, or the time is over."""
        waiting = [future for future, _ in self._pending if not future.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=seconds)

    def let_go(self, error: Exception | None = None) -> None:
        """Close now; whoever waits is told that the answer is lost."""
        if self.closed:
            return
        self.closed = True
        with contextlib.suppress(RuntimeError, ValueError, OSError):  # its loop may be closed
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        if self._watch is not None:
            self._watch.cancel()
        self._close()
        pending, self._pending = self._pending, deque()
        self._outgoing.clear()
        if self._loop.is_closed():
            return
        for future, _ in pending:
            if not future.done():
                lost = error or Lost("the connection was closed")
                future.set_exception(lost)

    # ── the socket ───────────────────────────────────────────────────────────────────────────

    def _send(self, packed: bytes) -> None:
        """Send now, or, if it is small, together with what others ask in this turn of the loop.

        With something large the server has enough to do, while others here get theirs ready.
        """
        first = not self._outgoing
        self._outgoing.append(packed)
        if self._writing:
            return
        if len(packed) >= _AT_ONCE or (first and len(self._pending) == 1):
            self._flush()
        elif first:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what there is, as far as the socket takes it."""
        outgoing = self._outgoing
        try:
            while outgoing:
                if len(outgoing) > 1 and len(outgoing[0]) < _JOINED:
                    together = b"".join(outgoing)
                    outgoing.clear()
                    outgoing.append(together)
                data = outgoing[0]
                sent = self._socket.send(data)
                if sent < len(data):
                    outgoing[0] = memoryview(data)[sent:]
                    break
                outgoing.popleft()
        except _AGAIN:
            pass
        except OSError as error:
            self._fail(error)
        self._watch_room(wanted=bool(outgoing))

    def _watch_room(self, *, wanted: bool) -> None:
        """Go on when the socket has room again, if there is something left."""
        if wanted == self._writing or self.closed:
            return
        self._writing = wanted
        if wanted:
            self._loop.add_writer(self._socket, self._flush)
        else:
            self._loop.remove_writer(self._socket)

    def _readable(self) -> None:
        buffer = self._buffer
        try:
            size = self._socket.recv_into(buffer)
            while size:
                self._heard = runtime.monotonic()
                self._parser.feed(buffer, 0, size)
                self._answer()
                # TLS may hold more than the system knows of, so it has to be asked.
                if self.closed or (size < _CHUNK and not self._tls):
                    return
                size = self._socket.recv_into(buffer)
        except _AGAIN:
            return
        except (OSError, ProtocolError) as error:
            self._fail(error)
            return
        self._fail(Lost("the server closed the connection"))

    def _answer(self) -> None:
        """Hand each complete reply to the one who has waited longest."""
        gets, pending = self._parser.gets, self._pending
        while (reply := gets()) is not MORE:
            if not pending:
                # Nobody asked: a server says so why it does not want us, and closes.
                self._fail(reply if isinstance(reply, ReplyError) else Lost("an answer too many"))
                return
            future, _ = pending.popleft()
            if not future.done():
                future.set_result(reply)

    def _look(self) -> None:
        """Abandon a connection whose server says nothing, or not what was asked for."""
        self._watch = None
        if not self._pending or self.closed:
            return
        now = runtime.monotonic()
        end = min(self._heard + self._silence, self._pending[0][1] + self._patience)
        if now >= end:
            self._fail(Lost("the server gave no answer in time"))
        else:
            self._watch = self._loop.call_later(end - now, self._look)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, (Lost, ProtocolError, ReplyError)):
            self.let_go(error)
            return
        lost = Lost(f"the connection broke: {error}")
        lost.__cause__ = error
        self.let_go(lost)


# ── opening ──────────────────────────────────────────────────────────────────────────────────


async def connect(address: Address, patience: float, silence: float) -> Connection:
    """Open a connection: logged in, in its database. Raises what `faults` can explain."""
    async with asyncio.timeout(min(_CONNECT_SECONDS, patience)):
        channel = await _open(address)
        connection = Connection(channel, patience, silence)
        try:
            await _enter(connection, address)
        except BaseException:
            connection.let_go()
            raise
    return connection


async def _enter(connection: Connection, address: Address) -> None:
    """Say who we are and where we want to work, all at once."""
    words: list[tuple[Argument, ...]] = []
    if address.password is not None:
        who = (address.user, address.password) if address.user else (address.password,)
        words.append(("AUTH", *who))
    if address.db:
        words.append(("SELECT", address.db))
    words.append(("CLIENT", "SETNAME", "lamplighter"))
    answers = [connection.ask(pack(one)) for one in words]
    *needed, name = await asyncio.gather(*answers, return_exceptions=True)
    # The name is only for people who look at the server.
    for reply in needed if _unimportant(name) else (*needed, name):
        if isinstance(reply, Exception):
            raise reply


def _unimportant(reply: Any) -> bool:
    """Tell whether the server, if it refused to note our name, would do all else."""
    said = str(reply)
    return isinstance(reply, ReplyError) and ("NOPERM" in said or "unknown" in said)


async def _open(address: Address) -> socket.socket:
    loop = asyncio.get_running_loop()
    if address.path is not None:
        return await _reach(socket.AF_UNIX, address.path)
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    problem: OSError = OSError(f"no address of {address.host} is known")
    for family, _, _, _, place in found:
        try:
            channel = await _reach(family, place)
            break
        except OSError as error:
            problem = error
    else:
        raise problem
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            channel.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return await _secure(channel, address) if address.tls else channel


async def _reach(family: int, place: Any) -> socket.socket:
    channel = socket.socket(family, socket.SOCK_STREAM)
    channel.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(channel, place)
    except BaseException:
        channel.close()
        raise
    return channel


async def _secure(channel: socket.socket, address: Address) -> socket.socket:
    """Shake hands for TLS."""
    try:
        secured = _context(address).wrap_socket(
            channel, server_hostname=address.host, do_handshake_on_connect=False
        )
    except BaseException:
        channel.close()
        raise
    loop = asyncio.get_running_loop()
    try:
        while True:
            try:
                secured.do_handshake()
                return secured
            except ssl.SSLWantReadError:
                await _ready(loop.add_reader, loop.remove_reader, secured)
            except ssl.SSLWantWriteError:
                await _ready(loop.add_writer, loop.remove_writer, secured)
    except BaseException:
        secured.close()
        raise


def _context(address: Address) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.ca)
        if address.cert is not None:
            context.load_cert_chain(address.cert, address.key)
    except OSError as error:
        raise InvalidUrl(
            f"a file for TLS in the url {address.shown} cannot be used: {error}",
            hint="check ca=…, cert=… and key=…: each names a file in PEM format that this "
            "process may read",
            value=address.shown,
        ) from error
    return context


async def _ready(
    add: Callable[..., None], remove: Callable[[Any], Any], channel: socket.socket
) -> None:
    """Wait until the socket can be read from, or written to."""
    future = asyncio.get_running_loop().create_future()

    def ready() -> None:
        if not future.done():
            future.set_result(None)

    add(channel, ready)
    try:
        await future
    finally:
        remove(channel)
