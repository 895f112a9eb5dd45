"""Messages of PostgreSQL's protocol, version 3: read from a stream of bytes, and made."""

import struct

QUERY, SYNC, CALL = b"QSF"
ENDS_REQUEST = frozenset((QUERY, SYNC, CALL))
"""From the client: the server answers with everything up to READY."""
OPENS_REQUEST = frozenset(b"PBDECH")
"""From the client: more must follow before the server says READY."""
PARSE = ord("P")
TERMINATE = ord("X")
READY = ord("Z")
ERROR = ord("E")
IDLE = ord("I")

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102
VERSION_3 = 3 << 16


class Frames:
    """Finds whole messages: one byte for the kind, four for the length of the rest."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> tuple[bytes, list[tuple[int, int, int]]]:
        """Give the whole messages so far, and of each the kind and where it starts and ends."""
        buffer = self._rest + data if self._rest else data
        found: list[tuple[int, int, int]] = []
        at, size = 0, len(buffer)
        while at + 5 <= size:
            end = at + 1 + int.from_bytes(buffer[at + 1 : at + 5], "big")
            if end > size:
                break
            found.append((buffer[at], at, end))
            at = end
        self._rest = buffer[at:]
        return buffer[:at], found


class Opening:
    """Finds the packets with which a client begins: a length and a number, but no kind."""

    def __init__(self) -> None:
        self.rest = b""
        """What came after the last packet that was given."""

    def feed(self, data: bytes) -> None:
        """Take bytes."""
        self.rest += data

    def next(self) -> tuple[int, bytes] | None:
        """Give the number and the body of the next packet, if it is all there."""
        if len(self.rest) < 8:
            return None
        length, code = struct.unpack_from("!II", self.rest)
        if len(self.rest) < length:
            return None
        body, self.rest = self.rest[8:length], self.rest[length:]
        return code, body


def message(kind: bytes, body: bytes) -> bytes:
    """Make a message."""
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def words(*texts: str) -> bytes:
    """Make texts as they stand in messages."""
    return b"".join(text.encode() + b"\0" for text in texts)


def read_words(body: bytes) -> list[str]:
    """Read texts up to the empty one at the end."""
    return [word.decode("utf-8", "replace") for word in body.rstrip(b"\0").split(b"\0")]


def fatal(code: str, text: str) -> bytes:
    """Make the error after which a connection is closed."""
    fields = (b"S", "FATAL"), (b"V", "FATAL"), (b"C", code), (b"M", text)
    return message(b"E", b"".join(field + words(value) for field, value in fields) + b"\0")


def statement_of(whole: bytes, kind: int, start: int, end: int) -> str | None:
    """Give the text of a statement, if the message carries one."""
    body = whole[start + 5 : end]
    if kind == QUERY:
        return body.rstrip(b"\0").decode("utf-8", "replace")
    if kind == PARSE:
        return body.split(b"\0", 2)[1].decode("utf-8", "replace")
    return None
