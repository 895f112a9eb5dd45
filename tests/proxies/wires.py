"""What a proxy must know of a protocol to lose an answer at the right moment.

A wire follows one connection. It keeps the requests that wait for their answer, in order, and cuts
what the server sends into pieces that belong to one request each. Another protocol is another
class with these two methods.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tests.proxies.messages import (
    CANCEL_REQUEST,
    ENDS_REQUEST,
    ERROR,
    GSS_REQUEST,
    IDLE,
    READY,
    SSL_REQUEST,
    Frames,
    Opening,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes from the server that belong to the answer to one request."""

    data: bytes
    request: bytes | None = None
    """What was asked; None where the server speaks unasked, or of the beginning."""
    last: bool = False
    """The answer is complete."""
    done: bool = False
    """With the last piece: the server did what was asked, for good."""


class Wire(Protocol):
    """Follows one connection."""

    def asked(self, data: bytes) -> None:
        """Take what the client sends."""
        ...

    def answered(self, data: bytes) -> list[Piece]:
        """Take what the server sends; give all that may go on to the client."""
        ...


MakeWire = Callable[[], Wire]


class PlainWire:
    """Knows nothing: bytes are bytes."""

    def asked(self, data: bytes) -> None:
        """Nothing to learn."""

    def answered(self, data: bytes) -> list[Piece]:
        """All of it may go on."""
        return [Piece(data)]


class PostgresWire:
    """Follows a client of PostgreSQL that does not encrypt.

    A request ends with Sync or a simple Query; its answer with ReadyForQuery, which the server
    sends after the commit. Only an answer without an error that leaves no transaction open says
    that the request was carried out for good.
    """

    def __init__(self) -> None:
        self._opening: Opening | None = Opening()
        self._codes = 0
        """Answers of one byte that the server still owes: may we encrypt?"""
        self._asks, self._answers = Frames(), Frames()
        self._request = bytearray()
        self._open: deque[bytes | None] = deque()
        self._failed = False

    def asked(self, data: bytes) -> None:
        if self._opening is not None:
            self._begin(self._opening, data)
            return
        whole, found = self._asks.feed(data)
        for kind, start, end in found:
            self._request += whole[start:end]
            if kind in ENDS_REQUEST:
                self._open.append(bytes(self._request))
                self._request.clear()

    def answered(self, data: bytes) -> list[Piece]:
        pieces: list[Piece] = []
        if self._codes and data:
            if data[:1] != b"N":
                raise ValueError("the client encrypts, so it cannot be followed: sslmode=disable")
            self._codes -= 1
            pieces.append(Piece(data[:1]))
            data = data[1:]
        whole, found = self._answers.feed(data)
        begun = 0
        for kind, _, end in found:
            if kind == ERROR:
                self._failed = True
            elif kind == READY:
                request = self._open.popleft() if self._open else None
                done = not self._failed and whole[end - 1] == IDLE
                pieces.append(Piece(whole[begun:end], request, last=True, done=done))
                begun, self._failed = end, False
        if begun < len(whole):
            pieces.append(Piece(whole[begun:], self._open[0] if self._open else None))
        return pieces

    def _begin(self, opening: Opening, data: bytes) -> None:
        opening.feed(data)
        while (packet := opening.next()) is not None:
            code, _ = packet
            if code in (SSL_REQUEST, GSS_REQUEST):
                self._codes += 1
            elif code != CANCEL_REQUEST:
                self._opening = None
                self._open.append(None)
                self.asked(opening.rest)
                return
