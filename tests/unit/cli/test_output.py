import json

import pytest

from lamplighter import runtime
from lamplighter.cli import output
from lamplighter.model.journal import Progress
from lamplighter.observability.logs import line_of


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("one\ntwo", "one"),
        ("`sh` ended with code 2:\nmore\noops\n", "`sh` ended with code 2: oops"),
        ("nothing follows:\n", "nothing follows:"),
    ],
)
def test_a_line_that_announces_another_is_shown_with_it(text, line):
    assert output.cause(text) == line


def test_instants_are_written_as_distance_from_now():
    now = runtime.now_ms()
    assert output.away(now) == "now"
    assert output.away(now + 7_200_500) == "in 2 h"
    assert output.away(now - 7_200_500) == "2 h ago"
    assert output.away(None) == ""


def test_what_was_stored_cannot_give_orders_to_the_terminal():
    assert output.printable("\x1b[31mred\x07") == "\\x1b[31mred\\x07"
    assert output.printable("zwölf €") == "zwölf €"


HOSTILE = "a\x9b31m\u202egpj.exe\u2066\u200f\x85\u2028\ud800z"


def test_no_json_that_is_printed_gives_orders_to_the_terminal(capsys):
    output.print_json({HOSTILE: [HOSTILE, "zwölf €"]})
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert json.loads(printed) == {HOSTILE: [HOSTILE, "zwölf €"]}
    assert "zwölf €" in printed


def test_no_line_of_json_gives_orders_to_the_terminal():
    written = line_of({"message": HOSTILE})
    assert written.isprintable()
    assert json.loads(written) == {"message": HOSTILE}


def test_notes_and_errors_give_no_orders_to_the_terminal(capsys):
    output.note(f"queue {HOSTILE}")
    assert capsys.readouterr().err.rstrip("\n").isprintable()


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


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (None, None),
        (Progress(done=3), "3"),
        (Progress(done=30, total=200, note="invoices"), "30 of 200 (15 %), invoices"),
        (Progress(done=1_234_567, total=2_000_000.5), "1,234,567 of 2,000,000.5 (61 %)"),
        (Progress(done=0.9999, total=1), "0.9999 of 1 (99 %)"),
        (Progress(done=5, total=0), "5 of 0"),
        (Progress(done=1e308, total=1e-308), "1e+308 of 1e-308"),
        (Progress(done=250, total=200), "250 of 200 (125 %)"),
    ],
)
def test_progress_is_told_in_its_own_units(progress, text):
    assert output.progress(progress) == text
