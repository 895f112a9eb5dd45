"""What a proxy must know of Redis to lose an answer at the right moment."""

from collections import deque

from tests.proxies.wires import Piece

_END = b"\r\n"


class RedisWire:
    """Follows a client that sends commands as arrays of texts (RESP2), without TLS.

    An answer that is not an error says that the command was carried out. Those to the greetings of
    a client, which change nothing, are never lost.
    """

    def __init__(self) -> None:
        self._asks, self._answers = bytearray(), bytearray()
        self._open: deque[bytes] = deque()

    def asked(self, data: bytes) -> None:
        self._asks += data
        while end := end_of(self._asks, 0):
            self._open.append(bytes(self._asks[:end]))
            del self._asks[:end]

    def answered(self, data: bytes) -> list[Piece]:
        self._answers += data
        pieces: list[Piece] = []
        while end := end_of(self._answers, 0):
            answer = bytes(self._answers[:end])
            del self._answers[:end]
            request = self._open.popleft() if self._open else None
            if request is not None and _greets(request):
                request = None
            done = not answer.startswith(b"-")
            pieces.append(Piece(answer, request, last=True, done=done))
        return pieces


def end_of(data: bytearray, start: int) -> int:
    """Give where the value that begins at ``start`` ends, or 0 if it has not come yet."""
    line = data.find(_END, start)
    if line < 0:
        return 0
    after = line + len(_END)
    kind = data[start : start + 1]
    if kind not in b"$*":
        return after
    count = int(data[start + 1 : line])
    if kind == b"$":
        after += count + len(_END) if count >= 0 else 0
        return after if after <= len(data) else 0
    for _ in range(count):
        after = end_of(data, after) if after < len(data) else 0
        if not after:
            return 0
    return after


def _greets(request: bytes) -> bool:
    return any(word in request[:40] for word in (b"\r\nCLIENT\r\n", b"\r\nAUTH\r\n", b"SELECT"))
