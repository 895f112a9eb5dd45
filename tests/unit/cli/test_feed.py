import json
import os
import sys
from typing import TextIO

import pytest

from lamplighter.cli.feed import Feed, Printer
from lamplighter.observability import events

JOB = {
    "job_id": "01M7FGQ3150077Z61KMGXG8AQQ",
    "type": "charge",
    "tenant": "acme",
    "queue": "payments",
    "attempt": 1,
    "seconds": 0.012,
    "delay_ms": 0,
    "reason": None,
    "error": None,
}


def settled(outcome, state, **fields):
    return {**JOB, "outcome": outcome, "state": state, **fields}


def test_a_job_that_succeeded_is_one_terse_line():
    line = str(Feed().line(events.JOB_SETTLED, settled("succeeded", "succeeded")))
    time, _, rest = line.partition(" ")
    assert len(time) == len("12:00:01")
    assert rest == f"succeeded  charge  {JOB['job_id']}  tenant=acme attempt=1 12 ms"


@pytest.mark.parametrize(
    ("outcome", "state", "word"),
    [
        ("failed", "waiting", "retrying"),
        ("timed_out", "waiting", "retrying"),
        ("failed", "dead", "dead"),
        ("rejected", "dead", "dead"),
        ("snoozed", "waiting", "snoozed"),
        ("released", "waiting", "released"),
        ("cancelled", "cancelled", "cancelled"),
        ("failed", "cancelled", "cancelled"),
    ],
)
def test_ends_are_named_as_the_states_are(outcome, state, word):
    line = Feed().line(events.JOB_SETTLED, settled(outcome, state))
    assert line is not None
    assert line.word == word


def test_a_retry_says_why_and_when():
    fields = settled("failed", "waiting", delay_ms=60_000, error="bank.Down: no answer\nat all")
    line = Feed().line(events.JOB_SETTLED, fields)
    assert line is not None
    assert line.text.endswith("attempt=1 again in 1 min · Down: no answer")
    assert line.failure


@pytest.mark.parametrize(
    ("delay_ms", "text"), [(21, "1 min"), (105, "5 min"), (625, "30 min"), (30_000, "1 d")]
)
def test_shortened_delays_are_told_in_the_programs_own_time(delay_ms, text):
    fields = settled("failed", "waiting", delay_ms=delay_ms)
    line = Feed(speed=2880).line(events.JOB_SETTLED, fields)
    assert line is not None
    assert f"again in {text}" in line.text


def test_every_event_has_a_line_or_is_noise():
    noise = {
        events.JOB_CLAIMED,
        events.JOB_STARTED,
        events.LEASES_RENEWED,
        events.STORE_CALL,
        events.STORE_ERROR,
    }
    for name in events.EVENTS:
        fields = settled("succeeded", "succeeded", count=1, created=1, seconds=1.0)
        assert (Feed().line(name, fields) is None) == (name in noise), name


def test_lines_for_programs_are_json(capsys):
    Printer(as_json=True).on_event(events.SERVICE_ERROR, {"service": "x", "error": ValueError("y")})
    told = json.loads(capsys.readouterr().out)
    assert told["event"] == "service.error"
    assert told["error"] == "y"
    assert told["at"].endswith("Z")


def pipe_without_reader() -> TextIO:
    source, sink = os.pipe()
    os.close(source)
    return os.fdopen(sink, "w")


@pytest.mark.parametrize("err", [False, True])
def test_the_end_of_the_reader_is_told_once_and_disturbs_nothing(monkeypatch, err):
    told = []
    printer = Printer()
    printer.on_closed = lambda: told.append(printer.closed)

    with monkeypatch.context() as patch, pipe_without_reader() as out, pipe_without_reader() as log:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", log)
        printer.tell("nobody", err=err)
        printer.tell("reads this", err=err)
        printer.on_event(events.SERVICE_ERROR, {"service": "x", "error": "y"})

    assert told == [True]


def test_a_child_that_cannot_start_says_why_in_a_line():
    trace = "importing `shop` failed:\n\n  File shop.py, line 3\nSyntaxError: invalid syntax"
    fields = {"pid": 7, "status": 3, "started": 0, "unstarted": 0, "error": trace}
    line = Feed().line(events.CHILD_DIED, fields)
    assert line is not None
    assert line.text.endswith("· importing `shop` failed: SyntaxError: invalid syntax")


def test_changes_of_the_number_of_children_are_told_with_their_reason():
    fields = {"worker": "w", "size": 3, "before": 2, "reason": "40 due jobs wait"}
    line = Feed().line(events.WORKER_SCALED, fields)
    assert line is not None
    assert line.text == "from 2 to 3 children: 40 due jobs wait"


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        (events.JOB_RESCUED, {"count": 1}, "1 job of workers"),
        (events.PRUNED, {"jobs": 1}, "1 job past"),
        (events.SCHEDULES_FIRED, {"count": 1}, "1 job of schedules"),
        (events.SCHEDULES_REPLANNED, {"count": 1, "zones": "2030a"}, "1 schedule by"),
        (events.WORKER_SCALED, {"before": 2, "size": 1, "reason": "idle"}, "from 2 to 1 child:"),
        (events.WORKER_RELOADED, {"children": 1}, "1 child is replaced"),
        (events.CHILD_DIED, {"pid": 7, "started": 0, "unstarted": 1}, "1 waiting job given back"),
    ],
)
def test_one_is_not_told_as_several(name, fields, said):
    line = Feed().line(name, fields)
    assert line is not None
    assert said in line.text


def test_a_lost_lease_is_not_said_to_be_with_a_worker_that_may_not_be_there():
    line = str(Feed().line(events.LEASE_LOST, {"job_id": JOB["job_id"], "verb": "settle"}))
    assert "its lease has ended, or another worker has it" in line


@pytest.mark.parametrize(("count", "words"), [(1, "1 job of"), (2, "2 jobs of")])
def test_rescued_jobs_are_counted_in_words(count, words):
    assert words in str(Feed().line(events.JOB_RESCUED, {"count": count}))


@pytest.mark.parametrize(("count", "words"), [(1, "1 job of"), (2, "2 jobs of")])
def test_fired_jobs_are_counted_in_words(count, words):
    assert words in str(Feed().line(events.SCHEDULES_FIRED, {"count": count}))


def test_a_late_search_names_what_can_have_made_it_late():
    line = str(Feed().line(events.CLOCK_JUMPED, {"seconds": 30.3}))
    assert "by 30.3 s" in line
    assert "the store was away" in line


@pytest.mark.parametrize(
    ("name", "fields", "level"),
    [
        (events.WORKER_WARNED, {"text": "no live worker serves `mail`"}, "warning"),
        (events.LOOP_SILENT, {"worker": "w/c0", "seconds": 6.0}, "warning"),
        (events.JOB_RESCUED, {"count": 1}, "warning"),
        (events.SERVICE_ERROR, {"service": "claim", "error": "busy"}, "warning"),
        (events.WORKER_STOPPING, {"running": 0}, "info"),
        (events.CHILD_STARTED, {"pid": 1}, "info"),
    ],
)
def test_what_warns_people_has_that_level_for_programs(name, fields, level, capsys):
    Printer(log_format="json").on_event(name, fields)

    assert json.loads(capsys.readouterr().out)["level"] == level
