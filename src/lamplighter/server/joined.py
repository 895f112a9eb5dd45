"""A transport that sends together what is written together."""

from __future__ import annotations

import asyncio
from typing import Any


class Joined:
    """Stands before a transport: head and body of an answer go out as one, not as two.

    What is written waits for the end of the answer, and no longer than until the event loop has
    time again: so also the first part of an answer that is still being made gets out.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        """Leave all else to the transport."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send soon."""
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(data)

    def flush(self) -> None:
        """Send now; what is left when the connection is gone is for nobody."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            if not self._transport.is_closing():
                self._transport.write(b"".join(waiting))

    def close(self) -> None:
        """Close when all is sent."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Tell whether it is closed, or will be."""
        return self._transport.is_closing()
