"""A port of this machine that can be shut and opened again."""

import asyncio
import socket
from collections.abc import Callable

HOST = "127.0.0.1"


class Door:
    """Keeps its port while it is shut: connections are refused then, and nobody else gets it."""

    def __init__(self) -> None:
        # Bound, but never listening.
        self._placeholder = _bound(0)
        self.port: int = self._placeholder.getsockname()[1]
        self._server: asyncio.Server | None = None

    async def open(self, visitor: Callable[[], asyncio.BaseProtocol]) -> None:
        """Let visitors in."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(visitor, sock=_bound(self.port), backlog=500)

    def shut(self) -> None:
        """Refuse new visitors; those who are in stay."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def give_up(self) -> None:
        """Shut for good."""
        self.shut()
        self._placeholder.close()


def _bound(port: int) -> socket.socket:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((HOST, port))
    return one
