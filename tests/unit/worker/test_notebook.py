"""What is kept of what an attempt says."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamplighter import runtime
from lamplighter.model.journal import (
    LOG_LIMIT,
    NOTE_LIMIT,
    PIECE_LIMIT,
    Journal,
    Line,
    Piece,
    Progress,
    joined,
    lines_of,
    unpack,
)
from lamplighter.secrecy import HIDDEN, redactor
from lamplighter.worker.notebook import ROW, Notebook
from tests.unit.worker.fakes import Clock, make_run


class Shelf:
    """A store that keeps one attempt's log as the port says."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.progress: Progress | None = None

    def apply(self, journal: Journal | None) -> None:
        if journal is None:
            return
        self.progress = journal.progress or self.progress
        for piece in journal.pieces:
            self.pieces.setdefault(piece.number, piece.data)
        for number in range(*journal.drop):
            self.pieces.pop(number, None)

    @property
    def lines(self) -> list[Line]:
        return lines_of(Piece(number, self.pieces[number]) for number in sorted(self.pieces))

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces.values()))


def texts_of(*written: str, **options) -> list[str]:
    book = Notebook(began=0.0, **options)
    for text in written:
        book.write("out", text)
    shelf = Shelf()
    shelf.apply(book.take(last=True))
    return shelf.texts


# ── lines ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (["one\n"], ["one"]),
        (["one", "\n"], ["one"]),
        (["o", "n", "e\ntwo"], ["one", "two"]),
        (["one\n\n\ntwo\n"], ["one", "", "", "two"]),
        (["\n"], [""]),
        (["", ""], []),
        (["a\r\nb\r", "\nc\n"], ["a", "b", "c"]),
        (["10 %\r50 %\r100 %\n"], ["100 %"]),
        (["\r10 %", "\r50 %", "\r100 %"], ["100 %"]),
        (["10 %\r", "50 %\r", "100 %\r"], ["100 %"]),
        (["\r\r\n"], [""]),
        (["tab\tstays\n"], ["tab\tstays"]),
        (["Grüße 🚀 ﷺ\n"], ["Grüße 🚀 ﷺ"]),
    ],
)
def test_text_becomes_lines(written, lines):
    assert texts_of(*written) == lines


def test_half_a_line_waits_for_its_rest():
    book, shelf = Notebook(began=0.0), Shelf()
    book.write("out", "one\ntw")
    shelf.apply(book.take())
    assert shelf.texts == ["one"]
    assert book.take() is None

    book.write("err", "other\n")
    book.write("out", "o\nthr")
    shelf.apply(book.take())
    assert [(line.level, line.text) for line in shelf.lines[1:]] == [
        ("err", "other"),
        ("out", "two"),
    ]

    shelf.apply(book.take(last=True))
    assert shelf.texts[-1] == "thr"
    assert [line.number for line in shelf.lines] == [0, 1, 2, 3]


def test_each_line_says_when_it_ended():
    clock = Clock()
    with runtime.install(clock):
        run = make_run(lambda: None)
        run.started_at = clock.seconds
        book, shelf = Notebook.of(run), Shelf()
        book.write("out", "at once\nlate")
        clock.seconds += 1.5
        book.write("out", "r\n")
        shelf.apply(book.take())

    assert [(line.at_ms, line.text) for line in shelf.lines] == [(0, "at once"), (1500, "later")]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\x00b\x07c\x7fd\x85e", "abcde"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPpayload\x1b\\rest", "rest"),
        ("\x1b(Bplain\x1bcreset", "plainreset"),
        ("\x9b31mred", "red"),
        ("\x1b]no end", "no end"),
        ("\x1b[1;2", "[1;2"[1:]),
        ("\x1b\x1b[0m[31m", "[31m"),
        ("end\x1b", "end"),
        ("half \ud83d emoji", "half \ufffd emoji"),
        ("a\u2028b\u202ec\u2066d", "a bcd"),
        ("a\vb\fc\x1cd", "abcd"),
    ],
)
def test_what_a_terminal_would_obey_does_not_survive(raw, shown):
    assert texts_of(raw + "\n") == [shown]


@given(st.text(st.characters(max_codepoint=0x2100, categories=("Cc", "Cs", "L", "P")), max_size=60))
def test_no_control_character_survives_wherever_it_stands(text):
    for line in texts_of(text):
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in line.replace("\t", ""))
        line.encode()


def test_a_level_is_neutralised_too():
    book, shelf = Notebook(began=0.0), Shelf()
    book.write("in\x1b[31mfo" + "x" * 100, "text\n")
    shelf.apply(book.take())
    assert shelf.lines[0].level == "info" + "x" * 16


def test_a_subclass_of_str_is_not_asked_for_its_opinion():
    class Odd(str):
        __slots__ = ()

        def __str__(self):
            raise RuntimeError

        __len__ = find = split = __str__

    assert texts_of(Odd("odd\n")) == ["odd"]


# ── long lines ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lump", [1, 7, 1000, 10**6])
def test_a_long_line_is_cut_with_a_mark(lump):
    line = "x" * 40_000 + "\nnext\n"
    shown = texts_of(*(line[i : i + lump] for i in range(0, len(line), lump)))
    assert shown == ["x" * 8192 + " … (31,808 characters cut)", "next"]


def test_the_limit_of_a_line_is_in_bytes_and_no_character_is_torn():
    (line,) = texts_of("ü" * 5000 + "\n")
    assert line == "ü" * 4096 + " … (904 characters cut)"


def test_a_carriage_return_forgets_what_was_too_long():
    assert texts_of("x" * 100_000, "\r", "short", "\n") == ["short"]
    assert texts_of("x" * 100_000 + "\r", "y\n") == ["y"]


def test_many_levels_with_half_lines_do_not_add_up():
    book = Notebook(began=0.0)
    for number in range(1000):
        book.write(f"level {number}", "half")
    assert len(book._halves) <= 8
    shelf = Shelf()
    shelf.apply(book.take(last=True))
    assert len(shelf.lines) == 1000


# ── secrets ──────────────────────────────────────────────────────────────────────────────────

SECRET = "s3cr3t-" + "k" * 60
redact = redactor(json.dumps({"token": SECRET}).encode(), ["token"])


@pytest.mark.parametrize("lump", [1, 5, 100_000])
@pytest.mark.parametrize("before", [0, 8150, 8192, 16_330, 16_384])
def test_a_secret_is_hidden_wherever_a_write_or_a_cut_divides_it(lump, before):
    text = "x" * before + SECRET + "y" * 20_000 + "\n"
    (line,) = texts_of(*(text[i : i + lump] for i in range(0, len(text), lump)), redact=redact)
    assert SECRET[:7] not in line
    assert "k" not in line
    assert HIDDEN in line or before > 0


def test_a_secret_at_the_end_of_the_window_is_hidden_though_others_made_room():
    text = (SECRET + " ") * 2000
    (line,) = texts_of(text, redact=redact)
    assert "s3cr3t" not in line
    assert "kk" not in line


def test_a_secret_with_colours_in_it_is_hidden():
    assert texts_of(f"\x1b[1m{SECRET[:9]}\x1b[0m{SECRET[9:]}\n", redact=redact) == [HIDDEN]


def test_a_secret_in_a_note_is_hidden_before_the_note_is_cut():
    book = Notebook(began=0.0, redact=redact)
    book.progress(1, 2, "x" * (NOTE_LIMIT - 10) + SECRET)
    taken = book.take()
    assert taken is not None
    assert taken.progress is not None
    assert taken.progress.note == "x" * (NOTE_LIMIT - 10) + HIDDEN


# ── progress ─────────────────────────────────────────────────────────────────────────────────


def test_the_last_progress_wins_and_is_given_once():
    book = Notebook(began=0.0)
    book.progress(1, 10, "")
    book.progress(2, 10, "two\nlines\x00")
    assert book.take() == Journal(progress=Progress(done=2, total=10, note="two lines"))
    assert book.take() is None
    book.progress(2, 10, "two lines")
    assert book.take() is None
    book.progress(3, None, "")
    assert book.take(last=True) == Journal(progress=Progress(done=3))


def test_progress_in_odd_numbers_can_be_stored():
    book = Notebook(began=0.0)
    book.progress(2**70, 10**300, "")
    taken = book.take()
    assert taken is not None
    assert taken.progress == Progress(done=2.0**70, total=1e300)
    assert type(taken.progress.done) is float


# ── pieces ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("line", ["x" * 30, '"\\' * 50, "🚀" * 40, "", "\t" * 100, '"' * 8000])
def test_no_piece_is_larger_than_its_limit_unless_it_is_one_line(line):
    book = Notebook(began=0.0)
    for _ in range(2000):
        book.write("info", line + "\n")
    journal = book.take()
    assert journal is not None
    for piece in journal.pieces:
        assert len(piece.data) <= PIECE_LIMIT or len(unpack(piece.data)) == 1
    assert journal.size <= LOG_LIMIT


def test_the_first_lines_and_the_last_are_kept():
    book, shelf = Notebook(began=0.0), Shelf()
    for number in range(50_000):
        book.write("out", f"line {number}\n")
        if number % 777 == 0:
            shelf.apply(book.take())
            assert shelf.size <= LOG_LIMIT
    shelf.apply(book.take(last=True))

    numbers = [line.number for line in shelf.lines]
    gaps = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1]
    assert len(gaps) == 1
    assert numbers[0] == 0
    assert numbers[-1] == 49_999
    assert [line.text for line in shelf.lines] == [f"line {number}" for number in numbers]
    assert LOG_LIMIT * 0.8 < shelf.size <= LOG_LIMIT


def test_what_was_never_handed_out_is_not_named_to_be_dropped_twice():
    book = Notebook(began=0.0)
    book.write("out", "x\n" * 100_000)
    first = book.take()
    assert first is not None
    start, end = first.drop
    assert [p.number for p in first.pieces] == [
        *range(start),
        *range(end, first.pieces[-1].number + 1),
    ]

    book.write("out", "y\n")
    second = book.take()
    assert second is not None
    assert second.drop in {(0, 0), (start, end + 1)}
    third = book.take(last=True)
    assert third is not None, "the last word always names the whole gap"
    assert third.drop[0] == start


class Model:
    """What a notebook should keep, said once more and simply."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.halves: dict[str, str] = {}

    def write(self, level: str, text: str) -> None:
        for char in text:
            if char == "\n":
                self.lines.append((level, self.halves.pop(level, "")))
            else:
                self.halves[level] = self.halves.get(level, "") + char

    def end(self) -> None:
        self.lines += self.halves.items()


LIMIT, PIECE, LINE = 2400, 300, 100
level = st.sampled_from(["out", "err", "info"])
words = st.text(st.sampled_from('ab "ü🚀\\'), max_size=LINE // 4)
chunk = st.lists(words, max_size=6).map("\n".join) | st.integers(0, 300).map("x\n".__mul__)
writes = st.tuples(st.just("write"), level, chunk)
step = writes | writes | writes | st.sampled_from([("take", True), ("take", False)])


@settings(max_examples=300, deadline=None)
@given(st.lists(step, max_size=80))
def test_the_store_holds_the_first_lines_and_the_last_whatever_is_written_and_whenever_taken(steps):
    book = Notebook(began=0.0, limit=LIMIT, piece=PIECE, line=LINE)
    model, shelf, kept = Model(), Shelf(), None
    for kind, *rest in [*steps, ("last", True)]:
        if kind == "write":
            book.write(*rest)
            model.write(*rest)
            continue
        taken = book.take(last=kind == "last")
        if kind == "last":
            model.end()
        if taken is not None:
            assert taken.size <= LIMIT
            kept = joined(kept, taken)
        if kept is not None and rest[0]:
            assert kept.size <= LIMIT
            shelf.apply(kept)
            kept = None
            check(shelf, model)


def check(shelf: Shelf, model: Model) -> None:
    assert shelf.size + ROW * len(shelf.pieces) <= LIMIT
    shown = [(line.level, line.text) for line in shelf.lines]
    numbers = [line.number for line in shelf.lines]
    assert shown == [model.lines[number] for number in numbers]
    gaps = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1]
    assert numbers[:1] == [0] * bool(model.lines)
    assert numbers[-1:] == [len(model.lines) - 1] * bool(model.lines)
    if not gaps:
        assert numbers == list(range(len(model.lines)))
        return
    assert len(gaps) == 1
    (gap,) = gaps
    ends = {
        number for number, data in shelf.pieces.items() if unpack(data)[0].number < numbers[gap]
    }
    for part in (ends, shelf.pieces.keys() - ends):
        # Not one piece more would have fitted.
        size = sum(len(shelf.pieces[number]) + ROW for number in part)
        assert LIMIT // 2 - PIECE - ROW < size <= LIMIT // 2
