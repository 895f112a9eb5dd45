import json
import re
from functools import partialmethod

import pytest

from lamplighter import runtime
from lamplighter.model.job import JobState, Status
from lamplighter.port.inspector import Inspector

OTHER = "e" * 16


def test_list_groups_by_cause(answer, lamplighter, store):
    store.dead(), store.dead()
    newest = store.dead(fingerprint=OTHER)

    groups = answer("dlq", "list")["groups"]

    assert [(group["count"], group["fingerprint"]) for group in groups] == [
        (2, "f" * 16),
        (1, OTHER),
    ]
    assert groups[1]["example"] == newest
    assert "CardDeclined: no money" in lamplighter("dlq", "list").stdout


def test_counts_that_leave_older_dead_letters_out_say_so(answer, lamplighter, store, monkeypatch):
    store.dead(), store.dead(), store.dead()
    exact = lamplighter("dlq", "list")
    assert ("≥" in exact.stdout, exact.stderr) == (False, "")
    assert answer("dlq", "list")["at_least"] is False

    monkeypatch.setattr(Inspector, "dead_groups", partialmethod(Inspector.dead_groups, most=2))
    told = lamplighter("dlq", "list")

    assert re.match(r" +≥ 2 +charge ", told.stdout.splitlines()[1])
    assert "only the newest 10,000 dead letters were looked at" in told.stderr
    found = answer("dlq", "list")
    assert ([group["count"] for group in found["groups"]], found["at_least"]) == ([2], True)


def test_list_keeps_to_its_filters(answer, store):
    store.dead("charge", tenant="acme")
    store.dead("refund", tenant="acme")
    assert answer("dlq", "list", "--type", "charge", "--after", "2h")["groups"][0]["count"] == 1
    assert answer("dlq", "list", "--before", "2h")["groups"] == []
    assert answer("dlq", "list", "--after", "2100-01-01T00:00:00Z")["groups"] == []
    assert answer("dlq", "list", "--tenant", "nobody")["groups"] == []


def test_show_gives_one_letter_or_all_with_one_cause(answer, lamplighter, store):
    first, second = store.dead(), store.dead()
    assert answer("dlq", "show", first)["error"]["fingerprint"] == "f" * 16
    assert {job["id"] for job in answer("dlq", "show", "f" * 16)["jobs"]} == {first, second}
    assert "Traceback:" in lamplighter("dlq", "show", first).stdout
    assert first in lamplighter("dlq", "show", "f" * 16).stdout


def test_show_refuses_what_is_not_dead(lamplighter, store):
    result = lamplighter("dlq", "show", store.submit())
    assert result.exit_code == 1
    assert "not dead" in result.stderr
    assert "neither a job id nor the fingerprint" in lamplighter("dlq", "show", "what").stderr


def test_replay_takes_a_filter(answer, store):
    wanted, other = store.dead("charge"), store.dead("refund")

    replayed = answer("dlq", "replay", "--type", "charge", "--reason", "bank is back")

    assert replayed == {"count": 1, "answers": {"done": 1}}
    assert store.job(wanted).status is Status.READY
    assert store.job(other).state is JobState.DEAD


@pytest.mark.parametrize(("verb", "generation"), [("retry", 0), ("replay", 1)])
def test_dead_letters_go_on_or_start_anew(answer, store, verb, generation):
    job_id = store.dead()

    assert answer("dlq", verb, "--all") == {"count": 1, "answers": {"done": 1}}
    assert store.job(job_id).status is Status.READY
    assert store.job(job_id).job.generation == generation


def test_a_waiting_job_is_no_dead_letter_to_retry(lamplighter, store):
    waiting = store.submit(delay_ms=60_000)

    assert "only dead letters are retried here" in lamplighter("dlq", "retry", waiting).stdout


def test_replay_takes_ids_and_answers_for_each(lamplighter, store):
    dead, done = store.dead("a"), store.succeeded("b")

    result = lamplighter("dlq", "replay", dead, done, "--json")

    assert result.exit_code == 1
    answers = {job["id"]: job["answer"] for job in json.loads(result.stdout)["jobs"]}
    assert answers == {dead: "done", done: "conflict"}
    assert store.job(done).state is JobState.SUCCEEDED


@pytest.mark.parametrize("verb", ["retry", "replay", "purge"])
def test_a_dry_run_shows_and_changes_nothing(answer, lamplighter, store, verb):
    job_id = store.dead()
    before = store.job(job_id)
    assert answer("dlq", verb, "--all", "--dry-run") == {
        "dry_run": True,
        "count": 1,
        "ids": [job_id],
    }
    assert answer("dlq", verb, job_id, "--dry-run")["ids"] == [job_id]
    told = lamplighter("dlq", verb, "--all", "--dry-run")
    assert job_id in told.stdout
    assert "1 dead letter would be" in told.stderr
    assert store.job(job_id) == before


@pytest.mark.parametrize("verb", ["retry", "replay", "purge"])
def test_nothing_is_chosen_by_mistake(lamplighter, store, verb):
    job_id = store.dead()
    assert lamplighter("dlq", verb).exit_code == 2
    assert lamplighter("dlq", verb, job_id, "--all").exit_code == 2
    assert lamplighter("dlq", verb, "--type", "charge", "--all").exit_code == 2
    assert store.job(job_id).state is JobState.DEAD


def test_purge_asks_for_a_yes(lamplighter, store):
    job_id = store.dead()

    result = lamplighter("dlq", "purge", "--all")

    assert result.exit_code == 1
    assert "1 dead letter would be removed for ever, and --yes was not given" in result.stderr
    assert "hint: add --yes to remove them, or --dry-run to see which" in result.stderr
    assert store.job(job_id).state is JobState.DEAD


@pytest.mark.parametrize("sure", [(), ("--yes",)])
@pytest.mark.parametrize("which", [("--all",), ("--type", "refund")])
def test_purge_of_nothing_says_so(lamplighter, answer, store, which, sure):
    job_id = store.succeeded()

    result = lamplighter("dlq", "purge", *which, *sure)

    assert (result.exit_code, result.stdout) == (0, "0 dead letters removed\n")
    assert "no dead letter was chosen; `lamplighter dlq list` shows all" in result.stderr
    assert answer("dlq", "purge", *which, *sure) == {"count": 0, "answers": {}}
    assert store.job(job_id).state is JobState.SUCCEEDED


def test_what_is_no_dead_letter_is_told_apart(lamplighter, store):
    done = store.succeeded()
    assert "only dead letters are run again here" in lamplighter("dlq", "replay", done).stdout
    said = lamplighter("dlq", "purge", done, "--yes").stdout
    assert "only dead letters are removed here" in said


def test_purge_removes_only_dead_letters(lamplighter, store):
    dead, done, other = store.dead("a"), store.succeeded("b"), store.dead("c")

    assert lamplighter("dlq", "purge", dead, done, "--yes").exit_code == 1
    assert lamplighter("dlq", "purge", "--fingerprint", "f" * 16, "--yes").exit_code == 0

    assert store.job(done).state is JobState.SUCCEEDED
    for gone in (dead, other):
        assert lamplighter("jobs", "show", gone).exit_code == 1


def test_a_long_list_of_letters_is_replayed_whole(answer, store, monkeypatch):
    monkeypatch.setattr("lamplighter.port.bulk.PAGE", 2)
    for _ in range(5):
        store.dead()
    assert answer("dlq", "replay", "--all") == {"count": 5, "answers": {"done": 5}}


def test_a_replay_takes_the_time_that_its_rate_asks_for(answer, store):
    for _ in range(5):
        store.dead()
    began = runtime.monotonic()
    assert answer("dlq", "replay", "--all", "--rate", "10") == {"count": 5, "answers": {"done": 5}}
    assert runtime.monotonic() - began >= 0.3  # two at once, then as much again, then the last


@pytest.mark.parametrize(("most", "total"), [(3, "at least 5"), (10, "about 5")])
def test_a_long_replay_says_how_many_there_are_as_far_as_it_knows(
    lamplighter, store, monkeypatch, most, total
):
    monkeypatch.setattr("lamplighter.cli.bulk.COUNT_LIMIT", most)
    monkeypatch.setattr("lamplighter.cli.pace._WORD_EVERY", 0.0)
    for _ in range(5):
        store.dead()

    told = lamplighter("dlq", "replay", "--all", "--rate", "10").stderr

    assert f"2 of {total} run again" in told


def test_a_rate_that_is_none_is_refused(lamplighter, store):
    store.dead()
    assert "--rate nan" in lamplighter("dlq", "replay", "--all", "--rate", "nan").stderr
    refused = lamplighter("dlq", "replay", "--all", "--rate", "0")
    assert refused.exit_code == 2
    assert "--rate" in refused.stderr
