"""A wire of Redis finds the same answers however the bytes are cut on their way."""

import pytest

from tests.proxies.redis_wire import RedisWire, end_of
from tests.proxies.wires import Piece

ANSWERS = [
    b"+OK\r\n",
    b":42\r\n",
    b"$-1\r\n",
    b"$0\r\n\r\n",
    b"$4\r\na\r\nb\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+x\r\n",
]


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


def fed(take, data: bytes, size: int) -> list[Piece]:
    found: list[Piece] = []
    for at in range(0, len(data), size):
        found += take(data[at : at + size]) or []
    return found


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_each_answer_belongs_to_its_request_whatever_it_is(size: int):
    wire = RedisWire()
    requests = [command(b"GET", b"%d" % number) for number in range(len(ANSWERS))]
    fed(wire.asked, b"".join(requests), size)

    pieces = fed(wire.answered, b"".join(ANSWERS), size)

    assert [piece.request for piece in pieces] == requests
    assert [piece.data for piece in pieces] == ANSWERS
    assert all(piece.last and piece.done for piece in pieces)


def test_an_error_says_that_nothing_was_done():
    wire = RedisWire()
    wire.asked(command(b"EVALSHA", b"0" * 40, b"0"))

    (piece,) = wire.answered(b"-NOSCRIPT No matching script\r\n")

    assert piece.last
    assert not piece.done


@pytest.mark.parametrize(
    "greeting",
    [(b"CLIENT", b"SETNAME", b"lamplighter"), (b"AUTH", b"secret"), (b"SELECT", b"1")],
)
def test_the_answer_to_a_greeting_belongs_to_no_request(greeting: tuple[bytes, ...]):
    wire = RedisWire()
    wire.asked(command(*greeting) + command(b"PING"))

    pieces = wire.answered(b"+OK\r\n+PONG\r\n")

    assert [piece.request for piece in pieces] == [None, command(b"PING")]


@pytest.mark.parametrize("whole", ANSWERS)
def test_an_answer_half_way_has_no_end_yet(whole: bytes):
    assert end_of(bytearray(whole), 0) == len(whole)
    assert not any(end_of(bytearray(whole[:size]), 0) for size in range(len(whole)))
