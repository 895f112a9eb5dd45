"""Lines go into pieces and come out as they were; journals are joined without losing a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamplighter.model.journal import (
    Journal,
    Line,
    Piece,
    Progress,
    joined,
    lines_of,
    pack,
    unpack,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))


def lines(*texts: str, first: int = 0) -> list[Line]:
    return [Line(first + n, 10 * n, "info", text) for n, text in enumerate(texts)]


@given(st.lists(st.tuples(st.integers(0), texts, texts)), st.integers(0, 10**9))
def test_what_was_packed_is_unpacked_as_it_was(entries, first):
    written = [Line(first + n, *entry) for n, entry in enumerate(entries)]

    assert unpack(pack(written)) == written


def test_what_no_file_can_hold_is_replaced():
    (line,) = unpack(pack(lines("half \ud800 a character")))

    assert line.text == "half ? a character"


@given(st.binary() | st.sampled_from([b"{}", b"[1]", b"[0,[[1]]]", b'{"a":1,"b":2}', b"[" * 9**5]))
def test_any_bytes_can_be_unpacked(data):
    assert all(isinstance(line, Line) for line in unpack(data))


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"", "0 bytes"),
        (b"\xff", "1 byte"),
        (b"{}", "2 bytes"),
        (b'[Infinity, [[0, "info", "text"]]]', "33 bytes"),
    ],
)
def test_what_cannot_be_read_is_a_line_that_says_so(data, size):
    (line,) = unpack(data)

    assert (line.level, line.text) == ("err", f"(a piece of {size} cannot be read)")


def test_the_lines_of_pieces_come_in_the_order_of_the_pieces():
    pieces = [Piece(0, pack(lines("a", "b"))), Piece(5, pack(lines("y", first=90)))]

    assert [(line.number, line.text) for line in lines_of(pieces)] == [
        (0, "a"),
        (1, "b"),
        (90, "y"),
    ]


def test_the_size_of_a_journal_is_that_of_its_pieces():
    assert Journal().size == 0
    assert Journal(pieces=(Piece(0, b"ab"), Piece(1, b"cde"))).size == 5


def test_joined_to_nothing_a_journal_stays_as_it_is():
    journal = Journal(progress=Progress(done=1), pieces=(Piece(0, b"a"),), drop=(1, 2))

    assert joined(None, journal) is journal


def test_joined_journals_have_the_pieces_of_both_and_the_last_progress():
    first = Journal(progress=Progress(done=1), pieces=(Piece(0, b"a"),))
    silent = Journal(pieces=(Piece(1, b"b"),))
    later = Journal(progress=Progress(done=2))

    together = joined(joined(first, silent), later)

    assert together.pieces == (Piece(0, b"a"), Piece(1, b"b"))
    assert together.progress == Progress(done=2)
    assert joined(first, silent).progress == Progress(done=1)


def test_joined_journals_drop_what_either_drops():
    first = Journal(pieces=(Piece(0, b"a"), Piece(1, b"b"), Piece(2, b"c")), drop=(1, 2))
    more = Journal(pieces=(Piece(3, b"d"),), drop=(1, 3))

    assert joined(first, Journal()).drop == (1, 2)
    assert joined(first, more) == Journal(pieces=(Piece(0, b"a"), Piece(3, b"d")), drop=(1, 3))


def kept(*journals: Journal) -> tuple[Progress | None, dict[int, bytes]]:
    """What a store has after it was told of these one after the other."""
    progress: Progress | None = None
    pieces: dict[int, bytes] = {}
    for journal in journals:
        progress = journal.progress or progress
        for piece in journal.pieces:
            pieces.setdefault(piece.number, piece.data)
        for number in range(*journal.drop):
            pieces.pop(number, None)
    return progress, pieces


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1))
def test_joined_journals_leave_in_a_store_what_they_leave_one_by_one(steps):
    journals: list[Journal] = []
    number = dropped = 0
    for more, fewer, moved in steps:
        pieces = tuple(Piece(number + n, b"%d" % (number + n)) for n in range(more))
        number += more
        dropped = min(number, dropped + fewer)
        journals.append(
            Journal(
                progress=Progress(done=number) if moved else None,
                pieces=pieces,
                drop=(0, dropped) if fewer else (0, 0),
            )
        )
    together: Journal | None = None
    for journal in journals:
        together = joined(together, journal)

    assert kept(together) == kept(*journals)
