"""`lamplighter jobs cancel`, `hold` and so on by filter: counted, confirmed, done once to each."""

import json

import pytest

from lamplighter.cli import bulk, pace
from lamplighter.model.job import JobState, Status

VERBS = ["cancel", "hold", "unhold", "retry", "replay", "purge"]


def test_what_a_filter_means_is_cancelled_and_nothing_else(lamplighter, answer, store):
    wanted = [store.submit("mail", tenant="acme") for _ in range(3)]
    others = [store.submit("mail", tenant="other"), store.submit("bill", tenant="acme")]
    chosen = ("jobs", "cancel", "--type", "mail", "--tenant", "acme")

    assert answer(*chosen, "--yes", "--reason", "wrong list") == {
        "count": 3,
        "answers": {"done": 3},
    }

    assert {store.job(job_id).state for job_id in wanted} == {JobState.CANCELLED}
    assert {store.job(job_id).state for job_id in others} == {JobState.WAITING}
    entries = answer("audit")["entries"]
    assert {(entry["action"], entry["object"], entry["reason"]) for entry in entries} == {
        ("job.cancel", job_id, "wrong list") for job_id in wanted
    }
    assert lamplighter(*chosen, "--yes").stdout == "0 jobs cancelled\n"


@pytest.mark.parametrize(
    ("verb", "status"),
    [("hold", Status.PAUSED), ("cancel", Status.CANCELLED), ("retry", Status.READY)],
)
def test_waiting_jobs_are_changed_by_filter(lamplighter, store, verb, status):
    job_id = store.submit(delay_ms=60_000)

    said = lamplighter("jobs", verb, "--status", "scheduled", "--yes")

    assert said.exit_code == 0
    assert said.stdout.startswith("1 job ")
    assert store.job(job_id).status is status


def test_held_jobs_are_unheld_and_ended_ones_replayed_and_purged_by_filter(lamplighter, store):
    held, ended = store.submit(held=True), store.succeeded("refund")

    assert lamplighter("jobs", "unhold", "--all", "--yes").stdout == "1 job unheld\n"
    assert store.job(held).status is Status.READY
    assert lamplighter("jobs", "replay", "--type", "refund", "--yes").stdout == "1 job run again\n"
    assert store.job(ended).job.generation == 1
    assert lamplighter("jobs", "cancel", "--all", "--yes").stdout == "2 jobs cancelled\n"
    assert lamplighter("jobs", "purge", "--all", "--yes").stdout == "2 jobs removed\n"
    assert lamplighter("jobs", "show", held).exit_code == 1


def test_jobs_that_run_are_told_to_stop(lamplighter, store):
    job_id = store.running()

    said = lamplighter("jobs", "cancel", "--all", "--yes")

    assert said.stdout == "0 jobs cancelled\n"
    assert "1 running job told to stop" in said.stderr
    assert store.job(job_id).status is Status.CANCELLING


def test_jobs_are_chosen_by_age_tag_schedule_and_cause(answer, store):
    wanted = store.submit("mail", tags=["eu"], schedule="nightly")
    dead = store.dead("bill")

    def count(*chosen: str) -> int:
        return answer("jobs", "cancel", *chosen, "--dry-run")["count"]

    assert count("--older-than", "2h") == 0
    assert count("--older-than", "2100-01-01T00:00:00Z") == 1
    assert count("--newer-than", "2h") == 1
    assert answer("jobs", "cancel", "--tag", "eu", "--dry-run")["ids"] == [wanted]
    assert count("--tag", "us") == 0
    assert count("--schedule", "nightly") == 1
    assert count("--schedule", "hourly") == 0
    found = answer("jobs", "retry", "--fingerprint", "f" * 16, "--dry-run")
    assert found == {"dry_run": True, "count": 1, "ids": [dead]}
    assert [job["id"] for job in answer("jobs", "list", "--schedule", "nightly")["jobs"]] == [
        wanted
    ]
    assert answer("jobs", "list", "--older-than", "2h")["jobs"] == []


@pytest.mark.parametrize("verb", VERBS)
def test_a_dry_run_shows_and_changes_nothing(answer, lamplighter, store, verb):
    ids = {store.submit(), store.submit(held=True), store.succeeded(), store.dead()}
    before = {job_id: store.job(job_id) for job_id in ids}

    found = answer("jobs", verb, "--all", "--dry-run")

    assert found["ids"]
    assert set(found["ids"]) <= ids
    told = lamplighter("jobs", verb, "--all", "--dry-run")
    assert "would be" in told.stderr
    assert "; nothing was done" in told.stderr
    assert answer("jobs", verb, *sorted(ids), "--dry-run")["count"] == 4
    assert {job_id: store.job(job_id) for job_id in ids} == before


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_chosen_by_mistake(lamplighter, store, verb):
    job_id = store.submit()
    for chosen in ((), (job_id, "--all"), ("--type", "charge", "--all"), (job_id, "--tag", "a")):
        assert lamplighter("jobs", verb, *chosen, "--yes").exit_code == 2
    assert store.job(job_id).status is Status.READY


@pytest.mark.parametrize("verb", VERBS)
def test_many_are_not_changed_without_a_yes(lamplighter, store, verb):
    before = [store.job(one) for one in (store.submit(), store.submit(held=True), store.dead())]

    said = lamplighter("jobs", verb, "--all")

    assert said.exit_code == 1
    assert "would be" in said.stderr
    assert "and --yes was not given; nothing was done" in said.stderr
    assert [store.job(record.job.id) for record in before] == before


def test_at_a_terminal_the_word_is_asked_for(lamplighter, store, monkeypatch):
    monkeypatch.setattr(bulk, "_can_ask", lambda: True)
    job_id = store.submit()

    refused = lamplighter("jobs", "cancel", "--all", stdin="yes\n")
    assert refused.exit_code == 1
    assert "1 job would be cancelled" in refused.stderr
    assert store.job(job_id).state is JobState.WAITING

    assert lamplighter("jobs", "cancel", "--all", stdin="cancel\n").exit_code == 0
    assert store.job(job_id).state is JobState.CANCELLED


def test_ids_are_not_asked_about(lamplighter, store):
    job_id = store.submit()

    assert lamplighter("jobs", "cancel", job_id).exit_code == 0
    assert lamplighter("jobs", "purge", job_id).exit_code == 0
    assert lamplighter("jobs", "show", job_id).exit_code == 1


def test_a_job_that_has_not_ended_is_not_purged(lamplighter, store):
    said = lamplighter("jobs", "purge", store.submit())

    assert said.exit_code == 1
    assert "it has not ended; cancel it first, or wait" in said.stdout


def test_a_filter_that_means_nothing_says_so(lamplighter, store):
    said = lamplighter("jobs", "hold", "--type", "none")

    assert (said.exit_code, said.stdout) == (0, "0 jobs held\n")
    assert "no job was chosen; `lamplighter jobs list` shows all there are" in said.stderr


def test_many_are_done_in_pages(answer, store, monkeypatch):
    monkeypatch.setattr("lamplighter.port.bulk.PAGE", 2)
    for _ in range(5):
        store.submit()

    assert answer("jobs", "hold", "--all", "--yes") == {"count": 5, "answers": {"done": 5}}


def test_what_was_done_before_it_stopped_is_told(lamplighter, store, monkeypatch):
    monkeypatch.setattr("lamplighter.port.bulk.PAGE", 2)
    for _ in range(5):
        store.submit()
    calls = iter([None, None, KeyboardInterrupt])

    async def interrupted(self, number: int) -> None:
        error = next(calls)
        if error is not None:
            raise error

    monkeypatch.setattr(pace.Pace, "wait", interrupted)

    said = lamplighter("jobs", "hold", "--all", "--yes")

    assert said.exit_code != 0
    assert "stopped: 4 held, the rest is as it was" in said.stderr
    listed = json.loads(lamplighter("jobs", "list", "--status", "paused", "--json").stdout)
    assert len(listed["jobs"]) == 4


def test_a_status_that_is_none_is_refused(lamplighter, store):
    said = lamplighter("jobs", "cancel", "--status", "sleeping", "--yes")

    assert said.exit_code == 1
    assert "unknown status `sleeping`" in said.stderr
