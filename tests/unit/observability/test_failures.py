"""Which failures are logged, how, and how many."""

import logging
from dataclasses import replace

import pytest

from lamplighter import runtime
from lamplighter.model import lifecycle
from lamplighter.model.job import ErrorInfo, JobState
from lamplighter.model.outcome import (
    Abandoned,
    Cancelled,
    Failed,
    Rejected,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.model.retry import Retry
from lamplighter.observability import failures
from lamplighter.observability.failures import IN_FULL, WINDOW, FailureLog
from tests.unit.worker.fakes import make_claim

BOOM = ErrorInfo(
    type="shop.Refused", message="no", traceback="Traceback …\nshop.Refused: no\n", fingerprint="f1"
)


class Clock(runtime.System):
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


def tell(log: FailureLog, outcome, *, attempts: int = 3, type: str = "charge") -> None:
    claim = make_claim()
    claim = replace(claim, job=replace(claim.job, type=type))
    settlement = lifecycle.settle(claim, outcome, retry=Retry(max_attempts=attempts))
    log.tell(claim.job, settlement, settlement.next.state)


@pytest.mark.parametrize(
    "outcome", [Succeeded(), Snoozed(1.0), Cancelled(), Released(), Released(started=True)]
)
def test_what_is_no_failure_is_not_logged(outcome, caplog):
    tell(FailureLog(), outcome)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("outcome", "attempts", "level", "words"),
    [
        (Failed(BOOM), 3, logging.WARNING, "failed, runs again in"),
        (Failed(BOOM), 1, logging.ERROR, "is dead: Refused: no"),
        (TimedOut(BOOM), 3, logging.WARNING, "timed_out, runs again in"),
        (Rejected("never"), 3, logging.ERROR, "is dead: rejected: never"),
        (Abandoned(), 3, logging.WARNING, "abandoned, runs again in"),
    ],
)
def test_a_failure_is_logged(outcome, attempts, level, words, caplog):
    tell(FailureLog(), outcome, attempts=attempts)
    (record,) = caplog.records
    assert record.name == "lamplighter.jobs"
    assert record.levelno == level
    assert words in record.getMessage()
    assert "charge" in record.getMessage()


def test_formatters_of_the_program_show_the_traceback(caplog):
    tell(FailureLog(), Failed(BOOM))
    (record,) = caplog.records
    assert logging.Formatter("%(message)s").format(record).endswith("\nshop.Refused: no")


def test_an_error_cannot_pass_for_another_line(caplog):
    tell(FailureLog(), Failed(replace(BOOM, message="a\n2030-01-01 INFO all is well\x1b[2J")))
    (record,) = caplog.records
    assert "a\\n2030" in record.getMessage()
    assert "\x1b" not in record.getMessage()


def test_of_one_cause_some_are_logged_in_each_window_and_the_rest_is_counted(clock, caplog):
    log = FailureLog()
    for _ in range(IN_FULL + 7):
        tell(log, Failed(BOOM))
    tell(log, Failed(replace(BOOM, fingerprint="f2")))
    tell(log, Failed(BOOM), type="refund")
    assert len(caplog.records) == IN_FULL + 2

    log.tick()
    assert len(caplog.records) == IN_FULL + 2
    clock.now += WINDOW
    log.tick()
    assert caplog.records[-1].getMessage() == "7 more like it were not logged: charge: Refused: no"
    log.tick()
    tell(log, Failed(BOOM))
    assert len(caplog.records) == IN_FULL + 4


def test_what_was_held_back_is_told_at_the_end(clock, caplog):
    log = FailureLog()
    for _ in range(IN_FULL + 1):
        tell(log, Failed(BOOM))
    log.close()
    log.close()
    assert [r.getMessage() for r in caplog.records if "more like it" in r.getMessage()] == [
        "1 more like it were not logged: charge: Refused: no"
    ]


def test_causes_are_forgotten(clock, caplog, monkeypatch):
    monkeypatch.setattr(failures, "CAUSES", 3)
    log = FailureLog()
    for number in range(10):
        tell(log, Failed(replace(BOOM, fingerprint=str(number))))
    assert len(log._causes) == 3
    assert len(caplog.records) == 10


def test_a_job_that_died_otherwise_is_logged(caplog):
    claim = make_claim()
    settlement = lifecycle.settle(claim, Released())
    FailureLog().tell(claim.job, settlement, JobState.DEAD)
    assert "is dead" in caplog.text
