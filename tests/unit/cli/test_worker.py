"""What a worker gets, as typed: processes and slots, and which store."""

import pytest

from lamplighter.cli.program import load_worker_app
from lamplighter.cli.worker import process_settings

NOTHING = dict.fromkeys(("processes", "children", "autoscale", "slots", "process_slots"))


@pytest.mark.parametrize(
    ("typed", "settings"),
    [
        ({}, {}),
        ({"processes": 3}, {"children": 3}),
        ({"children": 3}, {"children": 3}),
        ({"autoscale": "2..8"}, {"children": 2, "children_most": 8}),
        ({"slots": 5, "process_slots": 2}, {"slots": 5, "process_slots": 2}),
    ],
)
def test_options_become_settings(typed, settings):
    found = process_settings(**{**NOTHING, **typed})
    assert {name: value for name, value in found.items() if value is not None} == settings


@pytest.mark.parametrize("command", ["worker", "dev"])
@pytest.mark.parametrize(
    ("arguments", "cause_and_hint"),
    [
        (["--autoscale", "8..1"], ("ends below its beginning", "`1..8`")),
        (["--autoscale", "4"], ("is one number", "--processes 4")),
        (
            ["--autoscale", "1..4", "--processes", "2"],
            ("--processes 2 and --autoscale 1..4 contradict each other", "leave one out"),
        ),
        (["--autoscale", "1..300"], ("children_most", "between 0 and 256")),
        (["--queues", "a=1,b"], ("some have none", "`%3D`")),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(
    lamplighter, home, command, arguments, cause_and_hint
):
    cause, hint = cause_and_hint
    refused = lamplighter(command, "nothing:app", *arguments)
    assert refused.exit_code == 1
    error, _, rest = refused.stderr.partition("hint:")
    assert cause in error
    assert hint in rest
    assert not list(home.iterdir())


PROGRAM = """\
from lamplighter import App

app = App({url})


@app.job
async def charge() -> None: ...
"""


def note_of(home, capsys, module: str, url: str, typed: str | None = None) -> str:
    (home / f"{module}.py").write_text(PROGRAM.format(url=url))
    load_worker_app(f"{module}:app", url=typed)
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


def test_a_program_that_names_another_store_than_the_environment_is_told_of(home, capsys):
    told = note_of(home, capsys, "own_store", '"sqlite:///own.db"')
    assert "LAMPLIGHTER_URL is not used" in told
    assert "\nhint: write `App()`" in told


def test_the_file_that_names_a_store_in_vain_is_told_of(home, monkeypatch, capsys):
    (home / "secret").write_text("sqlite:///secret.db\n")
    monkeypatch.setenv("LAMPLIGHTER_URL_FILE", "secret")
    told = note_of(home, capsys, "own_store_and_file", '"sqlite:///own.db"')
    assert "LAMPLIGHTER_URL_FILE is not used" in told


@pytest.mark.parametrize(
    ("module", "url", "typed"),
    [
        ("same_store", '"sqlite:///jobs.db"', None),
        ("no_store", "", None),
        ("typed_store", '"sqlite:///own.db"', "sqlite:///typed.db"),
    ],
)
def test_one_store_is_not_worth_a_word(home, capsys, module, url, typed):
    assert not note_of(home, capsys, module, url, typed)


def test_the_only_store_is_not_worth_a_word_either(home, monkeypatch, capsys):
    monkeypatch.delenv("LAMPLIGHTER_URL")
    assert not note_of(home, capsys, "only_store", '"sqlite:///own.db"')
