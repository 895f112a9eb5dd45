"""Connections: how many there may be, and which of them have to go."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any, ClassVar, cast

import msgspec
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lamplighter import runtime
from lamplighter.server import problem
from lamplighter.server.errors import (
    HeadersTooLarge,
    HttpError,
    MalformedRequest,
    TooBusy,
    UrlTooLong,
)
from lamplighter.server.joined import Joined

log = logging.getLogger("lamplighter.server")

KEEP_ALIVE = 5
"""Seconds for which a connection without requests is kept."""
HEAD = 128 * 1024
"""Bytes of a head that are read at all; the gate refuses much smaller ones with a reason."""
LONGEST_URL = 65_535
"""Bytes of a path and query that the parser can count; the gate refuses shorter ones."""
AHEAD = 16
"""Requests that a connection may send before the first of them is answered."""
SLOWEST_READER = 1024
"""Bytes of an answer that have to be read per second, when it cannot be sent at once."""
_OTHER_FILES = 256
"""Files that a service has open beside its connections."""


class Connection(HttpToolsProtocol):
    """A connection that knows its limits; see ``protocol``."""

    most: ClassVar[int]
    patience: ClassVar[float]
    unread: ClassVar[float]
    full: ClassVar[Full]
    silent: ClassVar[dict[Connection, object]]
    """Connections that owe a request, the oldest first, with the last that they made."""

    _timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _last: object = None
    _until = 0.0
    _in_head = False
    _unused = 0
    """Bytes that have come since the last that were of use: the head so far, or a trailer."""

    def connection_made(self, transport: Any) -> None:
        self._joined = Joined(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._joined))
        if len(self.connections) > self.most:
            _close_silent(self.silent)
        self._expect_request(self.patience)

    def connection_lost(self, exc: Exception | None) -> None:
        self.silent.pop(self, None)
        for timer in (self._timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unused += len(data)
        super().data_received(data)
        # The parser would gather a line without an end for ever.
        if self._unused > HEAD and not self.transport.is_closing():
            self._refuse_head()

    def _refuse_head(self) -> None:
        self._refuse(
            HeadersTooLarge(
                f"the head of the request has more than {HEAD:,} bytes",
                hint="leave out what is not needed; the setting `http_header_bytes` has the limit",
                value=HEAD,
            )
        )

    def send_400_response(self, msg: str) -> None:
        """Answer for what the parser refuses."""
        length = len(getattr(self, "url", b""))
        if length > LONGEST_URL:
            self._refuse(
                UrlTooLong(
                    f"path and query have {length:,} bytes, of which {LONGEST_URL:,} can be read",
                    hint="ask for less at once; the setting `http_url_bytes` has the limit",
                    value=length,
                )
            )
            return
        self._refuse(
            MalformedRequest(
                "the request cannot be read as HTTP/1.1",
                hint=f"send whole requests, and no more than {AHEAD} before their answers",
            )
        )

    def _refuse(self, error: HttpError) -> None:
        """Answer in place of the application, which will never see the request."""
        told = problem.problem_of(error)
        body = msgspec.json.encode(told)
        head = f"HTTP/1.1 {told.status} {told.title}\r\ncontent-type: {problem.MEDIA_TYPE}\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= AHEAD:
            # The parser passes it on as an error of the request, which ends the connection.
            raise ValueError(f"more than {AHEAD} requests wait for their answers")
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes behind the body is of no use, and would be kept.
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._unused = 0
        if len(self.connections) > self.most:
            # All others are busy, or they would have been closed for this one.
            whole: Any = self.app
            self.app = cast("Any", self.full)
            super().on_headers_complete()
            self.app = whole
        else:
            super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer as if no upgrade had been asked for, and say nothing: anybody can ask."""

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._joined.flush()
        # Sent ahead, the next request may be there already.
        if self.cycle.response_complete:
            self._expect_request(KEEP_ALIVE + self.patience)

    def _expect_request(self, seconds: float) -> None:
        """Remember until when; a timer that runs already is left to find that out."""
        self._last = self.cycle
        self.silent.pop(self, None)
        self.silent[self] = self._last
        self._until = runtime.monotonic() + seconds
        if self._timer is None:
            self._timer = self.loop.call_later(seconds, self._close_if_silent)

    def _close_if_silent(self) -> None:
        self._timer = None
        if self.cycle is not self._last:
            return
        left = self._until - runtime.monotonic()
        if left > 0:
            self._timer = self.loop.call_later(left, self._close_if_silent)
        else:
            self.transport.close()
            self._expect_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reader()

    def _expect_reader(self) -> None:
        """Look later whether what cannot be sent has become less."""
        waiting = self.transport.get_write_buffer_size()
        if waiting and self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self.unread, self._cut_if_unread, waiting)

    def _cut_if_unread(self, before: int) -> None:
        self._unread_timer = None
        waiting = self.transport.get_write_buffer_size()
        if waiting and before - waiting < SLOWEST_READER * self.unread:
            self.transport.abort()
        else:
            self._expect_reader()


def protocol(most: int, patience: float, unread: float) -> type[Connection]:
    """Make a protocol that has at most so many connections, and does not wait for ever for them.

    A connection has ``patience`` seconds to send the head of its first request, and as long after
    the time for which it is kept to send that of another. When there are too many, the one that
    has been silent for longest is closed: whoever opens many and says nothing keeps nobody out.
    One whose answers are not read, or too slowly, for ``unread`` seconds is closed too.
    """
    silent: dict[Connection, object] = {}
    limits: dict[str, object] = {"most": most, "patience": patience, "unread": unread}
    limits |= {"silent": silent, "full": Full(most)}
    return type("LimitedConnection", (Connection,), limits)


class Full:
    """Answers for a service that has as many connections as it may have.

    Whoever watches over it learns that it is alive: to end it for being busy would make it worse.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._told = float("-inf")
        self._untold = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and close its connection."""
        if scope["path"] == "/healthz":
            status, media, body, more = 200, b"application/json", b'{"status":"ok"}', []
        else:
            self._tell()
            told = problem.problem_of(
                TooBusy(
                    f"the service has {self._most:,} connections, and all of them are in use",
                    hint="try again after the time that Retry-After names; the setting "
                    "`http_connections` has the limit",
                    value=self._most,
                )
            )
            status, media = told.status, problem.MEDIA_TYPE.encode()
            body, more = msgspec.json.encode(told), [(b"retry-after", b"1")]
        headers = [
            (b"content-type", media),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
            *more,
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _tell(self) -> None:
        """Log it, once a second at most."""
        self._untold += 1
        now = runtime.monotonic()
        if now - self._told >= 1:
            log.warning(
                "%d requests refused: all %d connections are in use", self._untold, self._most
            )
            self._told, self._untold = now, 0


def _close_silent(silent: dict[Connection, object]) -> None:
    """Close the connection that has been silent for longest, if there is one."""
    while silent:
        oldest = next(iter(silent))
        last = silent.pop(oldest)
        if oldest.cycle is last and not oldest.transport.is_closing():
            oldest.transport.close()
            # Its end is told later, and until then it would count.
            oldest.connections.discard(oldest)
            return


def make_room(most: int) -> None:
    """Let this process open so many connections, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
