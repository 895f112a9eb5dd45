"""Secret arguments are in no answer of the command line."""

import json

import pytest

from lamplighter import runtime
from lamplighter.model.ids import compose
from lamplighter.model.job import ErrorInfo, Extras, NewJob
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Failed
from lamplighter.model.retry import Retry
from lamplighter.port.store import Engine
from lamplighter.port.values import NewWorker, TypeInfo
from lamplighter.secrecy import HIDDEN

SECRET = "sk-live-9f8e7d6c5b4a"
BROKEN = ErrorInfo(type="Broken", message="it broke", fingerprint="f" * 16)


@pytest.fixture
def letter(store) -> str:
    """Id of a dead letter with a secret argument."""
    job_id = compose(runtime.now_ms(), 0, runtime.random_bits(70))
    args = json.dumps({"order": "o-1", "token": SECRET, "pin": 12}).encode()
    extras = Extras(secrets=("token", "pin"))

    async def work(engine: Engine) -> None:
        await engine.jobs.submit([NewJob(id=job_id, type="pay", args=args, extras=extras)])
        (claim,) = (await store.claim(engine, "pay")).claims
        await engine.jobs.settle([settle(claim, Failed(BROKEN), retry=Retry(max_attempts=1))])

    store.run(work)
    return job_id


def test_no_listing_shows_a_secret(lamplighter, letter):
    for command in (
        ["jobs", "show", letter],
        ["jobs", "show", letter, "--tracebacks"],
        ["jobs", "list"],
        ["jobs", "logs", letter],
        ["dlq", "show", letter],
        ["dlq", "show", BROKEN.fingerprint],
        ["dlq", "list"],
        ["dlq", "replay", "--all", "--dry-run"],
        ["why", letter],
    ):
        for form in ([], ["--json"]):
            result = lamplighter(*command, *form)
            assert result.exit_code == 0, result.stderr
            assert SECRET not in result.output


def test_show_tells_which_arguments_are_secret(lamplighter, answer, letter):
    hidden = {"order": "o-1", "token": HIDDEN, "pin": HIDDEN}

    assert answer("jobs", "show", letter)["arguments"] == hidden
    assert answer("dlq", "show", letter)["arguments"] == hidden
    assert answer("jobs", "list")["jobs"][0]["arguments"] == hidden
    assert json.dumps(hidden, ensure_ascii=False) in lamplighter("jobs", "show", letter).stdout


def test_arguments_that_nobody_can_read_are_hidden_whole(answer, store):
    job_id = compose(runtime.now_ms(), 0, runtime.random_bits(70))
    new = NewJob(
        id=job_id, type="pay", args=f"token={SECRET}".encode(), extras=Extras(secrets=("token",))
    )
    store.run(lambda engine: engine.jobs.submit([new]))

    assert answer("jobs", "show", job_id)["arguments"] == HIDDEN


def test_a_job_submitted_by_name_has_the_secrets_its_workers_published(lamplighter, store):
    info = TypeInfo(
        name="pay",
        schema='{"type": "object"}',
        hash="1",
        queue="default",
        options={"secrets": ["token"]},
    )
    new = NewWorker(id="w-1", host="here", pid=1, queues=("default",), slots=1, types=(info,))
    store.run(lambda engine: engine.membership.join(new))

    result = lamplighter("submit", "pay", "-", stdin=json.dumps({"token": SECRET}))

    assert result.exit_code == 0, result.stderr
    job_id = result.stdout.strip()
    assert store.job(job_id).job.extras.secrets == ("token",)
    assert SECRET not in lamplighter("jobs", "show", job_id).output


def test_a_program_given_with_app_says_what_is_secret(lamplighter, home):
    (home / "shop.py").write_text(
        "from lamplighter import App\n"
        "app = App()\n"
        "@app.job(secrets=['token'])\n"
        "def pay(order: str, token: int) -> None: ...\n",
        encoding="utf-8",
    )

    refused = lamplighter("submit", "pay", "order=o-1", f"token={SECRET}", "--app", "shop:app")
    taken = lamplighter("submit", "pay", "order=o-1", "token=48151623", "--app", "shop:app")

    assert refused.exit_code == 1
    assert "arguments.token: its value, which is secret, does not fit" in refused.stderr
    assert SECRET not in refused.output
    assert "48151623" not in lamplighter("jobs", "show", taken.stdout.strip()).output
