import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.jobs import LINE, flood_line
from benchmarks.parts.flood import summary
from lamplighter.model.journal import LOG_LIMIT, Line, Piece, pack


def piece(number, *lines):
    return Piece(number, pack([Line(line, 0, "out", flood_line(line)) for line in lines]))


def test_a_line_of_a_flood_has_its_length_and_its_number():
    assert len(flood_line(7)) + 1 == LINE
    assert flood_line(7).startswith("line 7 ")


def test_a_log_may_lack_its_middle():
    found = summary([piece(0, 0, 1), piece(9, 98, 99)], 100)

    assert found["log_lines"] == 4
    assert found["log_kib"] == pytest.approx(4 * LINE / 1024, rel=0.05)


@pytest.mark.parametrize(
    ("kept", "missing"), [((1, 2, 99), "line 0 "), ((0, 1, 98), "line 99 "), ((), "line 0 ")]
)
def test_a_log_that_lacks_an_end_is_an_error(kept, missing):
    pieces = [piece(number, line) for number, line in enumerate(kept)]

    with pytest.raises(BenchmarkError, match=missing):
        summary(pieces, 100)


def test_a_log_that_is_too_long_is_an_error():
    lines = LOG_LIMIT // LINE + 1

    with pytest.raises(BenchmarkError, match="limit is 262,144"):
        summary([piece(number, number) for number in range(lines)], lines)
