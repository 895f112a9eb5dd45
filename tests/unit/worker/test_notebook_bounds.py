"""Notebooks under a lot of text, from several sides at once, and from another process."""

import gc
import signal
import threading
import tracemalloc

import pytest

from lamplighter.model.journal import LOG_LIMIT, Journal, Line, Piece, Progress, pack
from lamplighter.worker.notebook import Notebook, Relay
from tests.unit.worker.test_notebook import Shelf, texts_of

MIB = 1024 * 1024


def test_of_a_huge_text_both_ends_are_kept_under_their_numbers():
    count = 600_000
    text = "".join(f"line {number}\n" for number in range(count))
    book, shelf = Notebook(began=0.0), Shelf()
    book.write("out", "before ")
    book.write("out", text)
    book.write("out", "after")
    shelf.apply(book.take(last=True))

    assert shelf.texts[0] == "before line 0"
    assert shelf.lines[-1].number == count
    for line in shelf.lines[1:-1]:
        assert line.text == f"line {line.number}"
    assert LOG_LIMIT * 0.8 < shelf.size <= LOG_LIMIT


@pytest.mark.parametrize("text", ["x" * (9 * MIB), "x" * (9 * MIB) + "\n", "\n" + "x" * (9 * MIB)])
def test_a_huge_text_may_be_one_line(text):
    shown = texts_of(text)
    assert shown[-1].startswith("x" * 8192 + " … (")
    assert len(shown) == 1 + text.startswith("\n")


def peak_of(write, *, times: int) -> int:
    """Bytes that a notebook needs at most while it is written to and taken now and then."""
    book = Notebook(began=0.0)
    gc.collect()
    tracemalloc.start()
    try:
        for turn in range(times):
            write(book, turn)
            if turn % (times // 8) == 0:
                taken = book.take()
                assert taken is None or taken.size <= LOG_LIMIT
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line", [1023, 64 * 1024])
def test_a_gibibyte_in_lumps_needs_little_memory(line):
    lump = ("x" * line + "\n") * (64 * 1024 // (line + 1)) or "x" * line
    assert peak_of(lambda book, _: book.write("out", lump), times=16 * 1024) < 2 * MIB


def test_many_small_prints_need_little_memory():
    def write(book: Notebook, turn: int) -> None:
        book.write("out", f"{turn:04}")
        book.write("out", "\n")

    assert peak_of(write, times=50_000) < MIB


def test_empty_lines_need_little_memory():
    assert peak_of(lambda book, _: book.write("out", "\n" * 1000), times=200) < MIB


def test_threads_may_write_while_another_takes():
    book, shelf = Notebook(began=0.0), Shelf()
    ended = threading.Event()

    def write(name: str) -> None:
        for number in range(2000):
            book.write(name, f"{name} {number}\n")

    def take() -> None:
        while not ended.is_set():
            shelf.apply(book.take())

    taker = threading.Thread(target=take)
    taker.start()
    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    ended.set()
    taker.join()
    shelf.apply(book.take(last=True))

    assert [line.number for line in shelf.lines] == list(range(4000))
    for name in "ab":
        mine = [line.text for line in shelf.lines if line.level == name]
        assert mine == [f"{name} {number}" for number in range(2000)]


def test_a_signal_handler_that_prints_in_the_middle_of_a_print_does_not_hang():
    book, shelf = Notebook(began=0.0), Shelf()
    inside = book._hear

    def interrupted(level: str, text: str) -> None:
        book._hear = inside
        signal.raise_signal(signal.SIGUSR1)
        inside(level, text)

    before = signal.signal(signal.SIGUSR1, lambda *_: book.write("err", "signal\n"))
    try:
        book._hear = interrupted
        book.write("out", "print\n")
    finally:
        signal.signal(signal.SIGUSR1, before)
    shelf.apply(book.take())
    assert shelf.texts == ["print", "signal"]


# ── relay ────────────────────────────────────────────────────────────────────────────────────


def piece(number: int, size: int = 10) -> Piece:
    return Piece(number, pack([Line(number, 0, "out", "x" * size)]))


def test_a_relay_gives_what_was_put_and_clears():
    relay = Relay()
    relay.put(Journal())
    assert relay.take() is None
    relay.put(Journal(pieces=(piece(0),)))
    relay.put(Journal(pieces=(piece(1),), progress=Progress(done=1)))
    relay.write("out", "ignored\n")
    relay.progress(2, 3, "note")

    assert relay.take() == Journal(
        pieces=(piece(0), piece(1)), progress=Progress(done=2, total=3, note="note")
    )
    assert relay.take(last=True) is None


def test_a_relay_that_nobody_takes_from_is_bounded_and_the_notebook_decides_what_stays():
    book, relay, shelf, direct = Notebook(began=0.0), Relay(), Shelf(), Shelf()
    for number in range(30_000):
        book.write("out", f"line {number}\n")
        if number % 100 == 99 and (journal := book.take()):
            relay.put(journal)
            direct.apply(journal)
            assert relay._journal is not None
            assert relay._journal.size <= LOG_LIMIT
    shelf.apply(relay.take())
    assert shelf.pieces == direct.pieces


def test_a_relay_cuts_the_middle_of_what_is_too_much():
    relay = Relay(limit=1000)
    for number in range(100):
        relay.put(Journal(pieces=(piece(number, 40),)))
    taken = relay.take()
    assert taken is not None
    numbers = [p.number for p in taken.pieces]
    assert numbers[0] == 0
    assert numbers[-1] == 99
    assert taken.size <= 1000
