"""Connections: how many there may be, and which of them have to go."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

KEEP_ALIVE = 5
"""Seconds for which a connection without requests is kept."""
_OTHER_FILES = 256
"""Files that a service has open beside its connections."""


def protocol(most: int, patience: float) -> type[H11Protocol]:
    """Make a protocol that has at most so many connections, and does not wait for ever for heads.

    A connection has ``patience`` seconds to send the head of its first request, and as long after
    the time for which it is kept to send that of another. When there are too many, the one that
    has been silent for longest is closed: whoever opens many and says nothing keeps nobody out.
    """
    silent: dict[H11Protocol, object] = {}
    """Connections that owe a request, the oldest first, with the last that they made."""

    class Connection(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                _close_silent(silent)
            self._expect_request(patience)

        def connection_lost(self, exc: Exception | None) -> None:
            silent.pop(self, None)
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect_request(KEEP_ALIVE + patience)

        def _expect_request(self, seconds: float) -> None:
            last = self.cycle
            silent.pop(self, None)
            silent[self] = last
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(seconds, self._close_if_silent_since, last)

        def _close_if_silent_since(self, last: object) -> None:
            if self.cycle is last:
                self.transport.close()

    return Connection


def _close_silent(silent: dict[H11Protocol, object]) -> None:
    """Close the connection that has been silent for longest, if there is one."""
    while silent:
        oldest = next(iter(silent))
        last = silent.pop(oldest)
        if oldest.cycle is last and not oldest.transport.is_closing():
            oldest.transport.close()
            return


def make_room(most: int) -> None:
    """Let this process open so many connections, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
