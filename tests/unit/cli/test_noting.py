"""What commands change stands in the audit log, as what is changed over HTTP does."""

import json

import pytest
from click.testing import CliRunner

from lamplighter.cli import store
from lamplighter.cli.main import main
from lamplighter.cli.store import run as run_async
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import claim, failed

OF = ("--tenant", "acme")
WHO = ("--by", "ada", "--reason", "because")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command on a store of its own, and give what it printed."""
    monkeypatch.setenv("LAMPLIGHTER_URL", f"sqlite:///{tmp_path}/jobs.db")
    monkeypatch.chdir(tmp_path)

    def run_one(*arguments: str) -> str:
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    run_one("migrate")
    return run_one


def noted(run) -> list[tuple[str, str, str | None, str]]:
    """Give action, object, tenant and answer of each entry, the oldest first."""
    entries = json.loads(run("audit", "--json"))["entries"]
    assert {(each["by"], each["reason"]) for each in entries} <= {("ada", "because")}
    return [
        (each["action"], each["object"], each["tenant"], each["answer"])
        for each in reversed(entries)
    ]


def submitted(run) -> str:
    return run("submit", "charge", "--force", "--tenant", "acme", "--delay", "60").strip()


def test_what_is_done_to_jobs_is_noted(run):
    job_id = submitted(run)
    for verb in ("hold", "unhold", "retry", "cancel", "cancel"):
        run("jobs", verb, job_id, *WHO)
    assert noted(run) == [
        ("job.hold", job_id, "acme", "done"),
        ("job.unhold", job_id, "acme", "done"),
        ("job.retry", job_id, "acme", "done"),
        ("job.cancel", job_id, "acme", "done"),
        ("job.cancel", job_id, "acme", "already"),
    ]


def test_what_is_refused_is_not_noted(run):
    job_id = submitted(run)
    run("jobs", "cancel", job_id, *WHO)
    result = CliRunner().invoke(main, ["jobs", "hold", job_id, *WHO])
    assert result.exit_code == 1
    assert len(noted(run)) == 1


def test_settings_are_noted(run):
    run("queues", "set", "payments", "--hold", *WHO)
    run("tenants", "set", "acme", "--weight", "2", *WHO)
    run("types", "hold", "charge", *WHO)
    assert noted(run) == [
        ("queues.put", "payments", None, "done"),
        ("tenants.put", "acme", "acme", "done"),
        ("types.put", "charge", None, "done"),
    ]


def test_what_is_done_to_schedules_is_noted(run, tmp_path):
    file = tmp_path / "schedules.toml"
    file.write_text('[nightly]\ntype = "charge"\ncron = "30 2 * * *"\ntenant = "acme"\n')
    run("schedules", "apply", "--force", *WHO)
    for verb in ("hold", "unhold", "trigger", "trigger"):
        CliRunner().invoke(main, ["schedules", verb, "nightly", *OF, *WHO])
    past = ("--from", "2020-01-01T00:00:00Z", "--to", "2020-01-03T00:00:00Z")
    run("schedules", "backfill", "nightly", *OF, *past, *WHO)
    run("schedules", "delete", "nightly", *OF, *WHO)
    assert noted(run) == [
        ("schedules.put", "nightly", "acme", "created"),
        ("schedule.hold", "nightly", "acme", "done"),
        ("schedule.unhold", "nightly", "acme", "done"),
        ("schedule.trigger", "nightly", "acme", "done"),
        ("schedule.trigger", "nightly", "acme", "skipped"),
        ("schedule.backfill", "nightly", "acme", "done"),
        ("schedule.delete", "nightly", "acme", "done"),
    ]


def test_the_log_of_one_tenant_tells_an_empty_one_from_an_empty_store(run):
    said = CliRunner().invoke(main, ["audit", "--tenant", "nope"]).stderr
    assert "nothing was changed yet that belongs to the tenant `nope`" in said
    assert "hint: `lamplighter audit` lists the changes of all" in said
    assert CliRunner().invoke(main, ["audit"]).stderr == "nothing was changed yet\n"


def test_whoever_puts_a_schedule_is_named_as_its_maker(run, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    run("schedules", "put", "nightly", "charge", "--cron", "30 2 * * *", "--force")
    (entry,) = json.loads(run("audit", "--json"))["entries"]
    assert entry["by"].startswith("ada@")


def test_dead_letters_are_noted_one_by_one(run):
    ids = [run("submit", "charge", "--force").strip() for _ in range(2)]
    run_async(_bury(ids))
    run("dlq", "replay", ids[0], *WHO)
    run("dlq", "purge", "--all", "--yes", *WHO)
    assert noted(run) == [
        ("dlq.replay", ids[0], "default", "done"),
        ("dlq.purge", ids[1], "default", "done"),
    ]


async def _bury(ids: list[str]) -> None:
    """Let these jobs fail for good."""
    async with store.opened(None) as engine:
        claims = await claim(engine, 10, types=("charge",))
        assert sorted(one.job.id for one in claims) == sorted(ids)
        await engine.jobs.settle([failed(one, retry=Retry(max_attempts=1)) for one in claims])
