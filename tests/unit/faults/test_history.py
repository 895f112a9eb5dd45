"""A journal must come back as it was told, whatever of it is missing."""

import json
import threading

import pytest

from tests.faults import audit, history, measures
from tests.faults.history import Journal, Tail, Write
from tests.faults.ledger import Ledger


@pytest.fixture
def journal(tmp_path):
    found = Journal(tmp_path / "history.jsonl")
    yield found
    found.close()


def read(tmp_path):
    return history.read(tmp_path / "history.jsonl")


def run(journal, job="a", lease=1, pid=7):
    journal.write("run_started", job=job, type="work", lease=lease, pid=pid, due=5, attempt=1)


def test_a_call_whose_answer_is_missing_is_unknown(journal, tmp_path):
    journal.write("submit_sent", job="a", type="work", tenant="t", key="k")
    journal.write("submit_sent", job="b", type="work", tenant="t", key=None)
    journal.write("submit_answered", job="b", answer="already", id="c")

    unknown, known = read(tmp_path).submissions

    assert (unknown.answer, unknown.acknowledged) == (None, False)
    assert (known.acknowledged, known.answered_id) == (True, "c")


def test_cancels_keep_their_answers_apart(journal, tmp_path):
    for call in ("1", "2"):
        journal.write("cancel_sent", job="a", call=call)
    journal.write("cancel_answered", job="a", call="2", answer="done")

    assert [call.answer for call in read(tmp_path).cancels] == [None, "done"]


def test_a_run_ends_with_its_record(journal, tmp_path):
    run(journal)
    journal.write("run_ended", job="a", lease=1, pid=7, how="returned")

    (found,) = read(tmp_path).runs

    assert found.ended is not None
    assert found.ended >= found.started


def test_a_run_without_a_record_ends_with_its_process(journal, tmp_path):
    journal.write("died", pid=7)
    run(journal)
    journal.write("died", pid=7)
    run(journal, job="b", pid=8)

    told = read(tmp_path)

    assert told.runs[0].ended == told.deaths[1][1]
    assert told.runs[1].ended is None


def test_pauses_end_with_the_signal_with_death_or_with_the_run(journal, tmp_path):
    for pid in (1, 2, 3):
        journal.write("stopped_by_signal", pid=pid)
    journal.write("resumed_by_signal", pid=1)
    journal.write("died", pid=2)

    told = read(tmp_path)

    assert [pause.pid for pause in told.pauses] == [1, 2, 3]
    assert told.pauses[2].ended == told.end


def test_refusals_deaths_and_kills_are_counted(journal, tmp_path):
    journal.write("event", name="lease.lost", fields={"job_id": "a", "verb": "settle"})
    journal.write("event", name="lease.lost", fields={"job_id": "a", "verb": "renew"})
    journal.write("event", name="child.died", fields={"worker": "w/c1", "pid": 7})
    journal.write("killed", what="child", pid=7)
    journal.write("killed", what="child", pid=8)

    told = read(tmp_path)

    assert (told.refused, told.dead_workers, told.kills) == (1, {"w/c1"}, {"child": 2})


def test_a_tail_leaves_half_a_line_for_later(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_text('{"kind": "a"}\n{"kind"')
    tail = Tail(path)

    assert tail.news() == [{"kind": "a"}]
    assert tail.news() == []
    with path.open("a") as file:
        file.write(': "b"}\n')
    assert tail.news() == [{"kind": "b"}]


def test_a_ledger_counts_every_effect(tmp_path):
    first, second = Ledger(tmp_path / "effects"), Ledger(tmp_path / "effects")
    for ledger in (first, second, first):
        ledger.add("a")

    assert first.count() == {"a": 3}
    first.close()
    second.close()


def test_an_author_is_found_in_results_and_errors():
    author = {"lease": 3, "nonce": "n"}

    assert audit.author_of(json.dumps(author)) == author
    message = f"made under {json.dumps(author)}"
    assert audit.author_of(json.dumps({"type": "E", "message": message})) == author
    assert audit.author_of(json.dumps({"type": "E", "message": "the worker vanished"})) is None
    assert audit.author_of("null") is None
    assert audit.author_of(None) is None


def test_rescue_times_count_from_the_death_to_the_due_time(journal, tmp_path):
    started = {"worker": "host-1", "queues": ""}
    journal.write("event", name="worker.started", supervisor=9, fields=started)
    journal.write("killed", what="supervisor", pid=9)
    *_, killed = history.read_lines(tmp_path / "history.jsonl")
    left = Write(
        number=1,
        job_id="a",
        old_state="running",
        new_state="waiting",
        worker="host-1/c0",
        abandoned=True,
        now_ms=killed["now"] + 2_000,
        due_ms=killed["now"] + 3_000,
    )

    assert measures.rescue_times(tmp_path / "history.jsonl", [left, left]) == [3.0]


def test_percentiles():
    values = [float(value) for value in range(1, 101)]

    assert measures.percentile(values, 0.99) == 99
    assert measures.percentile([5.0], 0.99) == 5
    assert measures.percentile([], 0.99) == 0


def test_lines_of_many_writers_do_not_mix(tmp_path):
    path = tmp_path / "history.jsonl"
    journals = [Journal(path) for _ in range(4)]

    def write(journal):
        for number in range(100):
            journal.write("line", number=number, text="x" * 2_000)
        journal.close()

    threads = [threading.Thread(target=write, args=(journal,)) for journal in journals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    numbers = [line["number"] for line in history.read_lines(path)]
    assert sorted(numbers) == sorted(list(range(100)) * 4)
