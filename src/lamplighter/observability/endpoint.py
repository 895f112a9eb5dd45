"""Answers GET /metrics, and nothing else: for processes that serve nothing beside it.

A few connections at a time, each with one short request that has to come soon.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable

from lamplighter.model.errors import InvalidOption
from lamplighter.model.hosts import hostname, is_loopback
from lamplighter.model.names import shown
from lamplighter.observability.exposition import CONTENT_TYPE

log = logging.getLogger("lamplighter.metrics")

MOST = 16
"""Connections at once; more are closed."""
HEAD = 8 * 1024
"""Bytes that a request may have."""
SECONDS = 5.0
"""Time for a request to come, and for its answer to go."""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    421: "Misdirected Request",
    500: "Internal Server Error",
}

Render = Callable[[], Awaitable[str]]


def bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Bind the address, to learn now whether it is free; ``shared``: with others that say so."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=MOST, reuse_port=shared)
    except (OSError, OverflowError) as error:
        raise InvalidOption(
            f"metrics cannot be served at {shown(f'{host}:{port}')}: {error}",
            hint="give another --metrics-port; 0 takes any that is free",
            value=port,
        ) from error


class Endpoint:
    """Serves what ``render`` writes."""

    def __init__(self, listener: socket.socket, render: Render) -> None:
        self._listener = listener
        self._render = render
        self._local = is_loopback(listener.getsockname()[0])
        self._server: asyncio.Server | None = None
        self._open = 0

    @property
    def url(self) -> str:
        """Where it is reached."""
        host, port = self._listener.getsockname()[:2]
        return f"http://[{host}]:{port}/metrics" if ":" in host else f"http://{host}:{port}/metrics"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._listener.getsockname()[1]

    async def start(self) -> None:
        """Begin to answer."""
        self._server = await asyncio.start_server(self._meet, sock=self._listener, limit=HEAD)

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        self._listener.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= MOST:
                async with asyncio.timeout(SECONDS):
                    writer.write(await self._answer(reader))
                    await writer.drain()
        except (TimeoutError, OSError):
            pass  # who is silent, or gone, needs no answer
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _response(400, "this is no HTTP request, or a very long one\n")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(400, "this is no HTTP request\n")
        if self._local and not _is_for_us(head):
            return _response(421, "this is only for programs on its own machine; use 127.0.0.1\n")
        method, target, _ = words
        if target.split(b"?", 1)[0] != b"/metrics":
            return _response(404, "there is only /metrics here\n")
        if method not in (b"GET", b"HEAD"):
            return _response(405, "use GET\n", "Allow: GET, HEAD\r\n")
        try:
            text = await self._render()
        except Exception:
            log.exception("metrics could not be written")
            return _response(500, "metrics could not be written; the log says why\n")
        return _response(200, text, only_head=method == b"HEAD")


def _is_for_us(head: bytes) -> bool:
    """Tell whether every host that a request names, if any, is this machine.

    A page of another site can have its own name lead here; the browser tells that name.
    """
    fields = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    hosts = [
        value.strip().decode("latin-1") for name, _, value in fields if name.lower() == b"host"
    ]
    return all(is_loopback(hostname(f"//{host}")) for host in hosts)


def _response(status: int, text: str, headers: str = "", *, only_head: bool = False) -> bytes:
    body = text.encode()
    kind = CONTENT_TYPE if status == 200 else "text/plain; charset=utf-8"
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
        f"X-Content-Type-Options: nosniff\r\n{headers}Connection: close\r\n\r\n"
    )
    return head.encode() if only_head else head.encode() + body
