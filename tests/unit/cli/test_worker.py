"""How many processes and slots a worker gets, as typed."""

import pytest

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
