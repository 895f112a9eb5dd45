"""What a job is charged with is compared to the last count."""

from dataclasses import replace

import pytest

from tests.faults import checker
from tests.faults.checker import GOOD, Budget, Rules
from tests.faults.history import Ending, History, Write

POISON = Budget("dead", crashes=2, reason="poison: ", errors=("SIGSEGV",))
DEAD = Ending(
    job_id="a",
    type="work",
    tenant="default",
    state="dead",
    crashes=2,
    reason="poison: it killed its process",
    error='{"message": "killed by signal 11 (SIGSEGV)"}',
)


def crash(number):
    return Write(number=number, job_id="a", old_state="running", new_state="waiting", crashed=True)


def history(ending=DEAD, crashes=2):
    return History(writes=[crash(n) for n in range(crashes)], endings={"a": ending})


def found(budget, told):
    rules = Rules(max_attempts={"work": 9}, budgets={"a": budget})
    return {
        name
        for name, mine in checker.check(told, rules).items()
        if name in {"I6", "neighbours"} and mine
    }


def test_a_harmful_job_that_is_charged_as_it_should_be_violates_nothing():
    assert found(POISON, history()) == set()


@pytest.mark.parametrize(
    "change",
    [
        {"state": "succeeded"},
        {"attempt": 1},
        {"crashes": 1},
        {"crashes": 3},
        {"losses": 1},
        {"reason": "failed 1 of 1 attempt"},
        {"reason": None},
        {"error": '{"message": "killed by signal 9"}'},
        {"error": None},
    ],
)
def test_every_difference_of_a_harmful_job_is_seen(change):
    assert found(POISON, history(replace(DEAD, **change))) == {"I6"}


def test_crashes_that_the_store_accepted_are_counted_one_by_one():
    assert found(POISON, history(crashes=3)) == {"I6"}


@pytest.mark.parametrize("change", [{"state": "dead"}, {"attempt": 1}, {"losses": 1}])
def test_a_good_job_that_is_harmed_is_a_neighbour_that_is_harmed(change):
    good = Ending(job_id="a", type="work", tenant="default", state="succeeded")

    assert found(GOOD, history(good, crashes=0)) == set()
    assert found(GOOD, history(replace(good, **change), crashes=0)) == {"neighbours"}


def test_a_crash_alone_takes_nothing_from_a_living_holder():
    early = replace(crash(1), worker="w", now_ms=1, old_expires_ms=5_000)

    assert checker.exclusive_leases(History(writes=[early])) == []
    taken = replace(early, abandoned=True)
    assert checker.exclusive_leases(History(writes=[taken]))
