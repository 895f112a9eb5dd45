import json

import pytest

from lamplighter.model.job import Level, Status
from lamplighter.model.retry import Retry

PROGRAM = """
from lamplighter import App

app = App()
nothing = App()


@app.job(queue="payments", priority="high")
async def charge(order: str, euros: int = 1) -> None: ...
"""


@pytest.fixture
def program(home):
    (home / "cli_shop.py").write_text(PROGRAM)
    return "cli_shop:app"


def test_a_job_is_submitted_with_all_its_options(lamplighter, store, program):
    result = lamplighter(
        *("submit", "charge", "order=7", "euros=5", "--app", program, "--delay", "2h"),
        *("--tenant", "acme", "--queue", "vip", "--priority", "low", "--key", "k-1"),
        *("--tag", "eu", "--tag", "web", "--timeout", "30s"),
    )

    assert result.exit_code == 0
    assert "due in 2 h" in result.stderr
    record = store.job(result.stdout.strip())
    job = record.job
    assert json.loads(job.args) == {"order": "7", "euros": 5}
    assert (job.tenant, job.queue, job.level) == ("acme", "vip", Level.LOW)
    assert (job.extras.tags, job.extras.timeout) == (("eu", "web"), 30)
    assert record.status is Status.SCHEDULED


def test_metadata_and_a_retry_policy_go_along(lamplighter, store, program):
    result = lamplighter(
        *("submit", "charge", "order=1", "--app", program, "--metadata", '{"source": {"row": 7}}'),
        *("--retry", '{"delays": [1, 60], "no_retry_on": ["CardDeclined"]}'),
    )
    extras = store.job(result.stdout.strip()).job.extras
    assert extras.metadata == {"source": {"row": 7}}
    assert extras.retry == Retry(delays=[1, 60], no_retry_on=["CardDeclined"])


def test_the_type_gives_queue_and_priority(lamplighter, store, program):
    result = lamplighter("submit", "charge", '{"order": "o-1"}', "--app", program)
    job = store.job(result.stdout.strip()).job
    assert (job.queue, job.level) == ("payments", Level.HIGH)


def test_the_same_key_gives_the_same_job(answer, lamplighter, store, program):
    submission = ("submit", "charge", "order=1", "--app", program, "--key", "k-1")
    first, second = answer(*submission), answer(*submission)
    assert (first["answer"], second["answer"]) == ("created", "already")
    assert first["id"] == second["id"]
    assert "made before" in lamplighter(*submission).stderr
    other = lamplighter("submit", "charge", "order=2", "--app", program, "--key", "k-1")
    assert other.exit_code == 1
    assert "belongs to job" in other.stderr


def test_a_live_worker_knows_the_type(lamplighter, store):
    store.worker("charge")
    result = lamplighter("submit", "charge", "order=7")
    assert result.exit_code == 0
    job = store.job(result.stdout.strip()).job
    assert job.queue == "payments"
    assert json.loads(job.args) == {"order": "7"}


def test_without_a_worker_that_knows_it_a_type_needs_force(lamplighter, store):
    store.worker("refund")
    refused = lamplighter("submit", "charge", "order=7")
    assert refused.exit_code == 1
    assert "no live worker knows the job type `charge`" in refused.stderr
    assert "known to live workers: refund" in refused.stderr
    assert lamplighter("submit", "charge", "order=7", "--force").exit_code == 0


def test_arguments_must_have_the_published_names(lamplighter, store):
    store.worker("charge")
    for given in (["orders=7"], ["order=7", "pounds=1"], []):
        refused = lamplighter("submit", "charge", *given)
        assert refused.exit_code == 1
        assert "it takes order, euros (optional)" in refused.stderr


def test_arguments_must_have_the_published_types(lamplighter, store):
    store.worker("charge")
    refused = lamplighter("submit", "charge", "order=7", "euros=many")
    assert refused.exit_code == 1
    assert "given were charge(order: string, euros: string)" in refused.stderr
    assert "it takes charge(order: string, euros: integer = …); --force" in refused.stderr
    assert "many" not in refused.stderr
    assert lamplighter("submit", "charge", "order=7", "euros=many", "--force").exit_code == 0


def test_arguments_may_come_from_stdin(lamplighter, store):
    store.worker("charge")
    result = lamplighter("submit", "charge", "-", stdin='{"order": "o-9"}')
    assert json.loads(store.job(result.stdout.strip()).job.args) == {"order": "o-9"}


def test_a_time_in_the_past_means_now(lamplighter, store, program):
    result = lamplighter(
        *("submit", "charge", "order=1", "--app", program, "--run-at", "2020-01-01T00:00:00Z")
    )
    assert store.job(result.stdout.strip()).status is Status.READY


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (['{"order": 1'], "not JSON"),
        (["order"], "neither name=value"),
        (['{"order": "1", "order": "2"}'], "the key `order` stands twice in one object"),
        (['{"order": {"a": 1, "a": 2}}'], "the key `a` stands twice in one object"),
        (["order=1", 'euros={"a": 1, "a": 2}'], "the key `a` stands twice in one object"),
        (["order=1", "--metadata", '{"a": 1, "a": 2}'], "stands twice in one object"),
        (["order=1", "--delay", "-5"], "the delay `-5` is negative"),
        (["order=1", "--delay", "soon"], "is not a duration"),
        (["order=1", "--run-at", "2030-01-01"], "has no time zone"),
        (["order=1", "--priority", "urgent"], "unknown priority `urgent`"),
        (["order=1", "--timeout", "0"], "timeout"),
        (["order=1", "--tenant", "x" * 65], "the limit is 64"),
        (["order=1", "--key", ""], "empty"),
        (["order=1", "--metadata", "eu"], "the metadata `eu` is not JSON"),
        (["order=1", "--metadata", '"eu"'], "is not a JSON object"),
        (["order=1", "--retry", '{"tries": 1}'], "unknown retry option `tries`"),
        (["order=1", "--retry", '{"max_attempts": 0}'], "max_attempts is `0`"),
        (["orders=1"], "`charge` cannot be called like this"),
        (["order=1", "euros=many"], "`charge` cannot be called like this"),
    ],
)
def test_what_cannot_be_submitted_is_told_and_nothing_is_stored(
    lamplighter, store, program, arguments, cause
):
    result = lamplighter("submit", "charge", *arguments, "--app", program)
    assert result.exit_code == 1
    assert cause in result.stderr
    assert "hint: " in result.stderr
    assert result.stdout == ""
    assert "no jobs" in lamplighter("jobs", "list").stderr


def test_one_time_is_enough(lamplighter, store, program):
    both = ("--delay", "1", "--run-at", "2030-01-01T00:00:00Z")
    assert lamplighter("submit", "charge", "--app", program, *both).exit_code == 2


def test_an_unknown_type_of_the_program_names_the_known_ones(lamplighter, store, program):
    refused = lamplighter("submit", "chrage", "--app", program)
    assert refused.exit_code == 1
    assert "did you mean `charge`?" in refused.stderr
