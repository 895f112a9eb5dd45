"""The view in a terminal, drawn on paper."""

import pytest

from lamplighter.cli.board import Board, Child, Facts, Running, bar
from lamplighter.model.journal import Progress
from lamplighter.observability import events
from lamplighter.port.values import QueueInfo, WorkerInfo

JOB = {"job_id": "01M7FGQ3150077Z61KMGXG8AQQ", "type": "charge", "tenant": "acme", "attempt": 1}


def settled(state: str, **fields):
    outcome = "failed" if state == "dead" else state
    return {**JOB, "outcome": outcome, "state": state, "seconds": 0.012, **fields}


def drawn(board: Board, height: int = 40, width: int = 120) -> str:
    from rich.console import Console

    console = Console(width=width, height=height, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    with console.file:
        console.print(board.draw(height))
    return console.export_text()


def busy_board() -> Board:
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
        children=[Child(pid=4712, state="ready", jobs=["a", "b", "c"])],
        running=[
            Running(
                id="a",
                type="close_the_books",
                tenant="bakery",
                attempt=2,
                seconds=61.5,
                progress=Progress(done=12, total=30, note="March, day 12"),
            ),
            Running(id="b", type="charge", tenant="acme", attempt=1, seconds=0.2),
        ],
    )
    return board


def test_the_board_shows_queues_workers_events_and_failures():
    board = busy_board()
    board.on_event(events.JOB_SETTLED, settled("succeeded"))
    board.on_event(events.JOB_SETTLED, settled("dead", error="Down: no answer"))
    board.say("printed", "hello from a handler")

    picture = drawn(board)

    for part in ("payments", "≥ 12,345", "4711", "4712", "succeeded", "17 succeeded", "1 dead"):
        assert part in picture
    assert picture.count("Down: no answer") == 2
    assert "hello from a handler" in picture
    assert "0.2 jobs/s" in picture


def test_running_jobs_are_shown_with_how_far_they_have_come():
    rows = drawn(busy_board()).splitlines()
    (row,) = [row for row in rows if "close_the_books" in row]
    for part in ("bakery", " 2 ", "████░░░░░░░░  40 %", "1 min 1 s", "March, day 12"):
        assert part in row


def test_children_are_shown_with_what_they_run():
    board = busy_board()
    for job_id, name in (("a", "close_the_books"), ("b", "charge"), ("c", "charge"), ("d", "x")):
        board.on_event(events.JOB_STARTED, {**JOB, "job_id": job_id, "type": name})
    assert "2 × charge, close_the_books" in drawn(board)


def test_kills_and_keys_stand_at_the_bottom():
    board = busy_board()
    board.toll = "killed 1 · lost 0 · recovered in 0.3 s"
    board.keys = "k kill -9 a child"
    *_, counts, keys = drawn(board).splitlines()
    assert "killed 1 · lost 0 · recovered in 0.3 s" in counts
    assert keys.startswith("k kill -9 a child")


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (None, ""),
        (Progress(done=7), "7"),
        (Progress(done=0, total=4), "░" * 12 + "   0 %"),
        (Progress(done=2, total=4), "█" * 6 + "░" * 6 + "  50 %"),
        (Progress(done=9, total=4), "█" * 12 + " 100 %"),
        (Progress(done=-1, total=4), "░" * 12 + "   0 %"),
        (Progress(done=3, total=0), "3"),
    ],
)
def test_bars_are_as_long_as_the_job_has_come(progress, text):
    assert bar(progress).plain == text


@pytest.mark.parametrize("height", [15, 19, 24, 40, 60])
def test_the_board_fits_into_terminals_of_all_sizes(height):
    board = busy_board()
    board.toll = "killed 0 · lost 0"
    board.say("note", "something happens")
    picture = drawn(board, height=height, width=80)
    assert len(picture.splitlines()) == height
    for part in ("payments", "close_the_books", "something happens", "killed 0", "Ctrl-C to stop"):
        assert part in picture


def test_the_board_shows_the_newest_lines_when_there_is_no_room_for_all():
    board = Board("title", "subtitle", 1.0)
    for number in range(100):
        board.say("note", f"line {number}.")
    picture = drawn(board)
    assert "line 99." in picture
    assert "line 0." not in picture
