"""One client, and the connection to the server that was made for it."""

import asyncio
from collections.abc import Callable
from typing import cast

from tests.proxies.scissors import Scissors
from tests.proxies.wires import Piece, Wire


class Side(asyncio.Protocol):
    """One of the two connections. It is read while nobody has a reason against it."""

    def __init__(self, conversation: "Conversation", take: Callable[[bytes], None]) -> None:
        self._conversation = conversation
        self._take = take
        self._against: set[str] = set()
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._against:
            self.transport.pause_reading()
        self._conversation.came(self)

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._conversation.left(self)

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.hold("the other side is slow")

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.free("the other side is slow")

    def hold(self, reason: str) -> None:
        """Read no more."""
        self._against.add(reason)
        if self.transport is not None:
            self.transport.pause_reading()

    def free(self, reason: str) -> None:
        """Read again, unless there is another reason against it."""
        self._against.discard(reason)
        if self.transport is not None and not self._against:
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send."""
        if self.transport is not None:
            self.transport.write(data)

    def end(self, *, politely: bool) -> None:
        """Close: after all was sent, or at once."""
        if self.transport is not None:
            if politely:
                self.transport.close()
            else:
                self.transport.abort()


class Conversation:
    """Carries bytes both ways, until one side leaves or an answer is cut."""

    def __init__(
        self,
        wire: Wire,
        scissors: Scissors,
        came: Callable[["Conversation"], None],
        gone: Callable[["Conversation"], None],
    ) -> None:
        self._wire = wire
        self._scissors = scissors
        self._came = came
        self._gone = gone
        self.client = Side(self, self._from_client)
        self.server = Side(self, self._from_server)
        self.client.other, self.server.other = self.server, self.client
        self._held: list[bytes] | None = None
        """The answer that will be cut, as far as it has come."""
        self._decided = False
        """The fate of the answer that is coming in has been chosen."""

    async def meet(self, host: str, port: int) -> None:
        """Connect to the server and begin; without one, the client is sent away."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self.server, host, port)
        except OSError:
            self.end()
            return
        self.client.free("not connected")

    def came(self, side: Side) -> None:
        """One side is there: the client comes first, and has to wait for the server."""
        if side is self.client:
            side.hold("not connected")
            self._came(self)
        elif self.client.transport is None or self.client.transport.is_closing():
            side.end(politely=False)

    def left(self, side: Side) -> None:
        """One side is gone: the other one may still take what was sent to it."""
        if side.other is not None:
            side.other.end(politely=True)
        if side is self.client:
            self._release()
            self._gone(self)

    def end(self) -> None:
        """Close both sides now."""
        self.client.end(politely=False)
        self.server.end(politely=False)

    def _from_client(self, data: bytes) -> None:
        self._wire.asked(data)
        self.server.write(data)

    def _from_server(self, data: bytes) -> None:
        for piece in self._wire.answered(data):
            if not self._carry(piece):
                return

    def _carry(self, piece: Piece) -> bool:
        """Send a piece on, or keep it back; False if that was the end."""
        if not self._decided and piece.request is not None:
            self._decided = True
            self._held = [] if self._scissors.takes(piece.request) else None
        if self._held is None:
            self.client.write(piece.data)
        else:
            self._held.append(piece.data)
            if piece.last and piece.done:
                self._scissors.note(piece.request or b"")
                self._held = None
                self.end()
                return False
        if piece.last:
            for data in self._held or ():
                self.client.write(data)
            self._release()
        return True

    def _release(self) -> None:
        if self._held is not None:
            self._scissors.give_back()
        self._held, self._decided = None, False
