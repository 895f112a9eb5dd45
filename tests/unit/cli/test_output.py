import pytest

from lamplighter import runtime
from lamplighter.cli import output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0124, "12 ms"),
        (1, "1 s"),
        (12.34, "12.3 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (23.5 * 3600, "23 h"),
        (86_400, "1 d"),
        (400 * 86_400, "400 d"),
    ],
)
def test_durations_are_written_in_their_largest_units(seconds, text):
    assert output.span(seconds) == text


def test_instants_are_written_as_distance_from_now():
    now = runtime.now_ms()
    assert output.away(now) == "now"
    assert output.away(now + 7_200_500) == "in 2 h"
    assert output.away(now - 7_200_500) == "2 h ago"
    assert output.away(None) == ""


def test_what_was_stored_cannot_give_orders_to_the_terminal():
    assert output.printable("\x1b[31mred\x07") == "\\x1b[31mred\\x07"
    assert output.printable("zwölf €") == "zwölf €"


def test_tables_are_neither_coloured_nor_cut_when_nobody_looks(capsys):
    output.print_table(["name", ">count"], [[("x" * 300, "red"), "1"]], empty="none")
    printed = capsys.readouterr().out
    assert "x" * 300 in printed
    assert "\x1b" not in printed
    assert not any(line.endswith(" ") for line in printed.splitlines())


def test_markup_in_names_is_shown_as_it_is(capsys):
    output.print_table(["name"], [["[red]x[/red]"], [":smile:"]], empty="none")
    assert "[red]x[/red]" in (printed := capsys.readouterr().out)
    assert ":smile:" in printed


def test_an_empty_table_leaves_stdout_to_the_data(capsys):
    output.print_table(["name"], [], empty="nothing here")
    assert capsys.readouterr() == ("", "nothing here\n")


def test_counts_beyond_the_limit_mean_at_least():
    assert output.count(9_999) == "9,999"
    assert output.count(10_000) == "≥ 10,000"
