import json
import socket
from datetime import UTC, datetime

import pytest

from lamplighter.model.job import JobState, Status
from lamplighter.testing.clock import installed

UNKNOWN = "01M7FGQ3150077Z61KMGXG8AQQ"


def test_list_shows_jobs_newest_first(lamplighter, store):
    first, second = store.submit("charge"), store.dead("refund")
    lines = lamplighter("jobs", "list").stdout.splitlines()
    assert lines[0].split()[:3] == ["id", "status", "type"]
    assert lines[1].startswith(second)
    assert "CardDeclined: no money" in lines[1]
    assert lines[2].startswith(first)


def test_an_empty_list_says_whether_a_filter_made_it_so(lamplighter, store):
    assert lamplighter("jobs", "list").stderr == "no jobs\n"
    assert lamplighter("jobs", "list", "--type", "charge").stderr == "no such job\n"


def test_list_keeps_to_its_filters(answer, store):
    wanted = store.dead("charge", tenant="acme", tags=["eu"], queue="payments")
    store.dead("charge", tenant="other", queue="payments")
    store.dead("refund", tenant="acme", tags=["eu"])
    store.submit("charge", tenant="acme", tags=["eu"])

    listed = answer(
        *("jobs", "list", "--status", "failed", "--type", "charge", "--tenant", "acme"),
        *("--tag", "eu", "--queue", "payments"),
    )

    assert [job["id"] for job in listed["jobs"]] == [wanted]


def test_list_goes_on_behind_its_cursor(answer, lamplighter, store):
    ids = [store.submit() for _ in range(3)]
    page = answer("jobs", "list", "--limit", "2")
    assert [job["id"] for job in page["jobs"]] == ids[:0:-1]

    rest = answer("jobs", "list", "--limit", "2", "--cursor", page["cursor"])

    assert [job["id"] for job in rest["jobs"]] == ids[:1]
    assert rest["cursor"] is None
    assert f"--cursor {page['cursor']}" in lamplighter("jobs", "list", "--limit", "2").stderr


def test_a_job_is_told_to_programs_under_keys_that_stay(answer, store):
    job_id = store.dead("charge", tenant="acme")
    job = answer("jobs", "show", job_id)
    assert job["id"] == job_id
    assert job["status"] == "dead"
    assert job["tenant"] == "acme"
    assert job["arguments"] == {"order": "o-1"}
    assert job["error"]["type"] == "CardDeclined"
    assert job["finished_at"].endswith("Z")
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["failed"]
    assert set(job) == {
        *("id", "type", "status", "state", "queue", "priority", "tenant", "schedule"),
        "arguments",
        *("created_at", "due_at", "claimed_at", "lease_ends_at", "finished_at"),
        *("failed_attempts", "crashes", "losses", "generation", "delivery", "timeout"),
        *("tags", "metadata", "worker", "hold", "cancel", "reason", "result", "result_note"),
        *("error", "progress", "attempts", "why"),
    }


def test_show_tells_people_everything(lamplighter, store):
    shown = lamplighter("jobs", "show", store.dead("charge")).stdout
    for part in ("CardDeclined: no money", '{"order": "o-1"}', "\nattempts", "Traceback:"):
        assert part in shown


def test_show_tells_the_result(lamplighter, store):
    assert '"paid"' in lamplighter("jobs", "show", store.succeeded()).stdout


def test_cancel_answers_for_each_job(lamplighter, store):
    waiting, running, done = store.submit("a"), store.running("b"), store.succeeded("c")

    result = lamplighter("jobs", "cancel", waiting, running, done, UNKNOWN, "--json")

    assert result.exit_code == 1
    assert [job["answer"] for job in json.loads(result.stdout)["jobs"]] == [
        "done",
        "requested",
        "conflict",
        "unknown",
    ]
    assert store.job(waiting).state is JobState.CANCELLED
    assert store.job(running).status is Status.CANCELLING


def test_hold_says_who_and_why(lamplighter, store):
    job_id = store.submit()

    result = lamplighter("jobs", "hold", job_id, "--reason", "audit")

    assert result.exit_code == 0
    assert "done" in result.stdout
    hold = store.job(job_id).hold
    assert hold is not None
    assert (hold.by, hold.reason) == (f"ada@{socket.gethostname()}", "audit")
    assert "audit" in lamplighter("jobs", "list").stdout


def test_unhold_lets_a_job_go_on(lamplighter, store):
    job_id = store.submit()
    lamplighter("jobs", "hold", job_id, "--by", "grace")
    assert store.job(job_id).status is Status.PAUSED

    assert lamplighter("jobs", "unhold", job_id).exit_code == 0

    assert store.job(job_id).status is Status.READY


def test_retry_lets_a_dead_job_go_on_and_runs_a_scheduled_one_now(answer, store):
    dead, later = store.dead(), store.submit("later", delay_ms=3_600_000)

    answers = answer("jobs", "retry", dead, later)

    assert [job["answer"] for job in answers["jobs"]] == ["done", "done"]
    assert store.job(dead).status is Status.READY
    assert store.job(dead).job.generation == 0
    assert store.job(later).status is Status.READY


@pytest.mark.parametrize(
    ("verb", "state", "said"),
    [
        ("cancel", "succeeded", "it has ended, so there is nothing to cancel"),
        ("cancel", "running", "it runs, and is told to stop"),
        ("hold", "running", "it runs on; if it is tried again, it waits"),
        ("unhold", "submit", "it was not held; `lamplighter why`"),
        ("unhold", "dead", "nothing to unhold"),
        ("retry", "submit", "it is due already; `lamplighter why`"),
        ("retry", "running", "to begin anew, cancel it first"),
        ("retry", "succeeded", "only waiting and dead jobs are retried"),
    ],
)
def test_an_answer_says_what_it_means(lamplighter, store, verb, state, said):
    job_id = getattr(store, state)()
    assert said in lamplighter("jobs", verb, job_id).stdout


def test_what_was_done_before_is_told(lamplighter, store):
    job_id = store.submit()
    lamplighter("jobs", "hold", job_id, "--by", "grace", "--reason", "audit")
    assert "held before by grace: audit" in lamplighter("jobs", "hold", job_id).stdout
    lamplighter("jobs", "cancel", job_id)
    assert "that was asked before" in lamplighter("jobs", "cancel", job_id).stdout
    assert "check the id" in lamplighter("jobs", "cancel", UNKNOWN).stdout


@pytest.mark.parametrize("verb", ["cancel", "hold", "unhold", "retry"])
def test_nothing_is_done_while_one_id_is_no_id(lamplighter, store, verb):
    job_id = store.submit()
    before = store.job(job_id)

    result = lamplighter("jobs", verb, job_id, "nonsense")

    assert result.exit_code == 1
    assert "`nonsense` is not a job id" in result.stderr
    assert store.job(job_id) == before


def test_why_gives_the_reasons(answer, lamplighter, store):
    job_id = store.submit(delay_ms=3_600_000)
    lamplighter("jobs", "hold", job_id, "--by", "grace", "--reason", "audit")

    told = lamplighter("why", job_id).stdout

    assert "held by grace: audit" in told
    assert "it is due in" in told
    found = answer("why", job_id)
    assert [reason["why"] for reason in found["reasons"]][:2] == ["held_job", "not_due"]
    assert found["reasons"][0]["mark"]["by"] == "grace"


def test_why_names_the_last_error_of_a_dead_job_and_where_the_rest_is(lamplighter, store):
    job_id = store.dead()

    told = lamplighter("why", job_id)

    assert "its last error: CardDeclined: no money\n" in told.stdout
    assert f"`lamplighter jobs show {job_id}`" in told.stderr


def test_why_says_of_a_running_job_until_when_it_is_leased(lamplighter, store):
    assert "(its lease lasts until 2" in lamplighter("why", store.running()).stdout


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "the last sign of life of a worker that could run it came 0.0 s ago"),
        (12, "the last sign of life of a worker that could run it came 12.0 s ago"),
        (20, "the one worker that could run it has given no sign of life for 20.0 s"),
        (40, "no worker is alive; none serves queue `default` and knows type `charge`"),
    ],
)
def test_why_promises_no_more_than_is_known_of_a_worker_that_died(
    lamplighter, store, seconds, said
):
    with installed(datetime(2030, 6, 1, 12, tzinfo=UTC)) as clock:
        store.worker("charge")
        job_id = store.submit("charge")
        clock.advance(seconds=seconds)
        assert said in lamplighter("why", job_id).stdout


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        (1, "the only live worker does not both serve queue `default` and know type `charge`"),
        (2, "none of the 2 live workers serves queue `default` and knows type `charge`"),
    ],
)
def test_why_counts_the_workers_that_cannot_run_it(lamplighter, store, workers, said):
    for at in range(workers):
        store.worker("refund", name=f"w-{at}")
    assert said in lamplighter("why", store.submit("charge")).stdout


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (1, "1 job of its tenant and type goes before it"),
        (2, "2 jobs of its tenant and type go before it"),
    ],
)
def test_why_counts_the_jobs_that_go_before_it(lamplighter, store, ahead, said):
    store.worker("charge")
    jobs = [store.submit() for _ in range(ahead + 1)]
    assert said in lamplighter("why", jobs[-1]).stdout


def test_why_and_show_say_that_a_job_is_unknown(lamplighter, store):
    for command in (["why"], ["jobs", "show"], ["dlq", "show"]):
        result = lamplighter(*command, UNKNOWN)
        assert result.exit_code == 1
        assert f"no job `{UNKNOWN}`" in result.stderr


def test_an_empty_queue_is_removed(lamplighter, answer, store):
    job_id = store.submit(queue="old")
    refused = lamplighter("queues", "remove", "old")
    assert refused.exit_code == 1
    assert "in use" in refused.stderr
    lamplighter("jobs", "cancel", job_id)
    assert answer("queues", "remove", "old", "--reason", "tidy") == {
        "name": "old",
        "answer": "done",
    }
    assert answer("queues", "list") == {"queues": []}
    assert "was removed before" in lamplighter("queues", "remove", "old").stdout
    assert "no queue `never`" in lamplighter("queues", "remove", "never").stderr


def test_erase_leaves_nothing_of_a_job_that_has_ended(lamplighter, answer, store):
    ended, waiting = store.dead("charge"), store.submit("charge")

    said = lamplighter("jobs", "erase", ended, "--reason", "asked")
    assert (said.exit_code, "done" in said.stdout) == (0, True)
    assert lamplighter("jobs", "show", ended).exit_code == 1
    refused = lamplighter("jobs", "erase", waiting)
    assert (refused.exit_code, "it has not ended" in refused.stdout) == (1, True)
    assert answer("jobs", "show", waiting)["id"] == waiting
    noted = lamplighter("audit", "--json").stdout
    assert ended in noted
    assert "job.erase" in noted
