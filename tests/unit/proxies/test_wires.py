"""A wire finds the same answers however the bytes are cut on their way."""

import pytest

from tests.proxies.messages import Frames, message, words
from tests.proxies.wires import Piece, PostgresWire

SSL = bytes.fromhex("0000000804d2162f")
START = bytes.fromhex("0000000f00030000") + b"user\0a\0"
HELLO = message(b"R", bytes(4)) + message(b"Z", b"I")
SELECT = message(b"P", words("", "SELECT 1") + bytes(2)) + message(b"S", b"")
ROWS = message(b"D", b"one") + message(b"C", words("SELECT 1")) + message(b"Z", b"I")


def pieces(wire: PostgresWire, data: bytes, size: int) -> list[Piece]:
    return [
        piece for at in range(0, len(data), size) for piece in wire.answered(data[at : at + size])
    ]


def tell(wire: PostgresWire, data: bytes, size: int) -> None:
    for at in range(0, len(data), size):
        wire.asked(data[at : at + size])


@pytest.fixture(params=[1, 3, 1000])
def size(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def wire(size: int) -> PostgresWire:
    """A wire whose client has been let in."""
    made = PostgresWire()
    tell(made, SSL, size)
    assert made.answered(b"N") == [Piece(b"N")]
    tell(made, START, size)
    assert [piece.request for piece in pieces(made, HELLO, size)] == [None] * (
        2 if size < 10 else 1
    )
    return made


def test_an_answer_belongs_to_its_request_and_ends_with_it(wire: PostgresWire, size: int):
    tell(wire, SELECT + message(b"Q", words("SELECT 2")), size)

    first = pieces(wire, ROWS, size)
    second = pieces(wire, ROWS, size)

    assert {piece.request for piece in first} == {SELECT}
    assert {piece.request for piece in second} == {message(b"Q", words("SELECT 2"))}
    assert [piece.last for piece in first] == [False] * (len(first) - 1) + [True]
    assert first[-1].done
    assert b"".join(piece.data for piece in first) == ROWS


def test_an_error_and_an_open_transaction_are_not_done_for_good(wire: PostgresWire, size: int):
    tell(wire, SELECT * 3, size)
    failed = message(b"E", b"\0") + message(b"Z", b"I")

    assert [pieces(wire, data, size)[-1].done for data in (failed, message(b"Z", b"T"), ROWS)] == [
        False,
        False,
        True,
    ]


def test_what_the_server_says_unasked_belongs_to_no_request(wire: PostgresWire, size: int):
    note = message(b"A", b"1234" + words("channel", "news"))

    assert pieces(wire, note, size) == [Piece(note)]


def test_a_client_that_encrypts_cannot_be_followed():
    wire = PostgresWire()
    wire.asked(SSL)

    with pytest.raises(ValueError, match="sslmode=disable"):
        wire.answered(b"S")


def test_a_message_is_given_when_it_is_whole():
    frames = Frames()

    assert frames.feed(ROWS[:6]) == (b"", [])
    assert frames.feed(ROWS[6:9])[0] == ROWS[:8]
