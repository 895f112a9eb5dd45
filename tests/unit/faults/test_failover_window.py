"""A failover may lose what it says it may lose, and nothing else."""

from pathlib import Path

import pytest

from tests.faults import checker
from tests.faults.checker import Rules
from tests.faults.history import Cancel, Ending, History, Run, Submission
from tests.faults.scenarios.failover import Window, forgive
from tests.faults.scenarios.stage import Verdict

RULES = Rules(max_attempts={"sole": 1}, at_most_once=frozenset({"sole"}))
WINDOW = Window(10_000, 12_000)


def judged(history):
    verdict = Verdict("failover", Path(), found=checker.check(history, RULES))
    lost = forgive(verdict, history, WINDOW)
    return lost, {one.invariant for one in verdict.violations}


def acknowledged(at):
    return Submission("a", "sole", "default", None, "created", "a", at)


def run(lease, at):
    return Run("a", "sole", lease, 1, at / 1000, at, ended=at / 1000 + 0.1)


@pytest.mark.parametrize(("at", "blamed"), [(9_999, {"I1"}), (10_000, set()), (13_001, {"I1"})])
def test_a_job_may_be_lost_that_was_acknowledged_within_the_window(at, blamed):
    lost, found = judged(History(submissions=[acknowledged(at)]))

    assert lost == {"a": at}
    assert found == blamed


@pytest.mark.parametrize(("at", "blamed"), [(9_999, {"I10"}), (10_000, set())])
def test_a_cancel_may_be_forgotten_that_was_answered_within_the_window(at, blamed):
    history = History(cancels=[Cancel("a", "done", at)])
    history.endings["a"] = Ending(job_id="a", type="sole", tenant="default", state="succeeded")

    assert judged(history)[1] == blamed


@pytest.mark.parametrize(("at", "blamed"), [(9_999, {"at most once"}), (10_000, set())])
def test_a_start_may_be_forgotten_that_fell_into_the_window(at, blamed):
    history = History(runs=[run(1, at), run(1, 20_000)])

    assert judged(history)[1] == blamed
