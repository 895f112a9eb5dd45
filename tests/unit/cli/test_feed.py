import json
import os
import sys
from typing import TextIO

import pytest

from lamplighter.cli.board import Board, Facts
from lamplighter.cli.feed import Feed, Printer
from lamplighter.observability import events
from lamplighter.port.values import QueueInfo, WorkerInfo

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


def drawn(board: Board) -> str:
    from rich.console import Console

    console = Console(width=120, height=30, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    with console.file:
        console.print(board.draw())
    return console.export_text()


def test_the_board_shows_queues_workers_events_and_failures():
    board = Board("lamplighter dev shop:app", "sqlite:///jobs.db", 1.0)
    board.facts = Facts(
        queues=[QueueInfo(name="payments", ready=3, scheduled=12_345, running=2, held=None)],
        workers=[
            WorkerInfo(
                id="w-1",
                host="here",
                pid=4711,
                queues=("payments",),
                types=("charge",),
                slots=50,
                running=2,
                joined_at_ms=0,
                beat_at_ms=0,
                state="alive",
            )
        ],
        counts={"succeeded": 17, "dead": 1},
    )
    board.on_event(events.CHILD_STARTED, {"worker": "w-1/c0", "pid": 4712})
    board.on_event(events.JOB_SETTLED, settled("succeeded", "succeeded"))
    board.on_event(events.JOB_SETTLED, settled("failed", "dead", error="Down: no answer"))
    board.say("printed", "hello from a handler")

    picture = drawn(board)

    for part in ("payments", "≥ 12,345", "4711", "4712", "succeeded", "17 succeeded", "1 dead"):
        assert part in picture
    assert picture.count("Down: no answer") == 2
    assert "hello from a handler" in picture
    assert "0.2 jobs/s" in picture


def test_the_board_shows_the_newest_lines_when_there_is_no_room_for_all():
    board = Board("title", "subtitle", 1.0)
    for number in range(100):
        board.say("note", f"line {number}.")
    picture = drawn(board)
    assert "line 99." in picture
    assert "line 0." not in picture
