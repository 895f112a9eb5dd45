"""What the parts of a run agree on."""

from __future__ import annotations

from tests.faults.checker import Rules

FOLDER = "LAMPLIGHTER_FAULTS_FOLDER"
"""Name of the variable that tells processes where the run keeps its files."""

WEIGHTS = {"light": 1, "middle": 3, "heavy": 6}
RULES = Rules(
    max_attempts={
        "block": 5,
        "block alone": 5,
        "deaf": 5,
        "doomed": 3,
        "doze": 5,
        "doze alone": 5,
        "fair": 5,
        "flaky": 5,
        "grip": 5,
        "nap": 5,
        "nap alone": 5,
        "sole": 1,
        "sole kill": 1,
        "spin": 5,
    },
    may_die=frozenset({"doomed", "sole", "sole kill"}),
    at_most_once=frozenset({"sole", "sole kill"}),
)
