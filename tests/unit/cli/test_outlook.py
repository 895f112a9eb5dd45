"""Jobs that nobody runs are told of: by `why`, `jobs show`, `queues`, `doctor` and `worker`."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from lamplighter import App, coordinator
from lamplighter.config import Settings
from lamplighter.coordinator.outlook import Lookout
from lamplighter.fleet import Fleet
from lamplighter.model.job import ErrorInfo, Refusal
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Misfit
from lamplighter.observability import events
from lamplighter.port.values import NewWorker, TypeInfo
from lamplighter.testing.clock import installed
from lamplighter.worker import queues as queue_list
from tests.unit.cli.conftest import URL


def join(store, name: str = "w-1", queues=("default",), types=("charge",)) -> None:
    infos = tuple(
        TypeInfo(name=each, schema="{}", hash=f"h-{each}", queue="default") for each in types
    )
    worker = NewWorker(id=name, host="here", pid=1, queues=queues, slots=4, types=infos)
    store.run(lambda engine: engine.membership.join(worker))


@pytest.fixture
def orphan(store):
    """A running job whose worker has been dead for a minute, and no other is there."""
    with installed(datetime.now(UTC)) as clock:
        join(store)
        job_id = store.running()
        clock.advance(60)
        yield job_id


def test_why_says_that_the_worker_is_dead_and_nobody_is_left(lamplighter, orphan):
    told = lamplighter("why", orphan).stdout

    assert "its worker w-1 is dead (no sign of life for 1 min)" in told
    assert "its lease ended 30.0 s ago, and no worker is alive to give it back: start one" in told
    assert "until" not in told


def test_show_says_it_too(lamplighter, answer, orphan):
    assert "its worker w-1 is dead" in lamplighter("jobs", "show", orphan).stdout
    assert "its worker w-1 is dead" in answer("jobs", "show", orphan)["why"]


def test_show_says_nothing_of_a_job_that_runs_as_it_should(answer, store):
    join(store)

    assert answer("jobs", "show", store.running())["why"] is None


def test_queues_tells_how_many_running_jobs_belong_to_dead_workers(lamplighter, answer, orphan):
    told = lamplighter("queues")

    assert "running, but their workers are dead or gone: 1 of default" in told.stderr
    assert answer("queues", "list")["queues"][0]["lost"] == 1


def test_queues_says_nothing_while_workers_live(lamplighter, store):
    join(store)
    store.running()

    assert lamplighter("queues").stderr == ""


def finding(answered: dict, check: str) -> dict:
    return next(one for one in answered["findings"] if one["check"] == check)


def test_doctor_finds_running_jobs_that_nobody_gives_back(lamplighter, orphan):
    result = lamplighter("doctor", "--json")
    found = json.loads(result.stdout)

    assert finding(found, "running")["grade"] == "problem"
    assert "1 running job belongs to workers that are dead" in finding(found, "running")["text"]
    assert result.exit_code == 1
    assert finding(found, "workers")["grade"] == "warning"
    # The service gives nothing back.
    assert "serve" not in finding(found, "running")["remedy"]


def test_doctor_warns_of_running_jobs_of_a_dead_worker_that_others_will_give_back(
    lamplighter, store, orphan
):
    join(store, "w-2")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "running")["grade"] == "warning"
    assert "--no-coordinator" in finding(found, "running")["remedy"]
    assert finding(found, "workers")["grade"] == "ok"


def test_doctor_shows_a_suspect(lamplighter, store):
    with installed(datetime.now(UTC)) as clock:
        join(store)
        clock.advance(20)
        found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "workers")["grade"] == "warning"
    assert "1 of 1 has given no sign of life" in finding(found, "workers")["text"]
    assert "`w-1`" in finding(found, "workers")["text"]


def test_doctor_says_which_types_and_queues_nobody_serves(lamplighter, store):
    join(store)
    store.submit("charge", queue="mail")
    store.submit("refund")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "queues")["grade"] == "warning"
    assert "no live worker serves `mail`" in finding(found, "queues")["text"]
    assert finding(found, "types")["grade"] == "warning"
    assert "no live worker knows `refund`" in finding(found, "types")["text"]


def test_doctor_says_which_types_nobody_serves_in_their_queue(lamplighter, store):
    join(store, "w-1", queues=("default",), types=("charge", "refund"))
    join(store, "w-2", queues=("mail",), types=("charge",))
    store.submit("refund")
    store.submit("charge", queue="mail")
    found = json.loads(lamplighter("doctor", "--json").stdout)
    assert finding(found, "types")["grade"] == "ok"

    store.submit("refund", queue="mail")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "queues")["grade"] == "ok"
    assert finding(found, "types")["grade"] == "warning"
    assert "no live worker that knows `refund` serves `mail`" in finding(found, "types")["text"]

    join(store, "w-3", queues=("mail", "default"), types=("refund",))
    found = json.loads(lamplighter("doctor", "--json").stdout)
    assert finding(found, "types")["grade"] == "ok"


def test_doctor_finds_a_type_in_a_queue_behind_more_jobs_than_it_looks_at(
    lamplighter, store, monkeypatch
):
    monkeypatch.setattr(coordinator.outlook, "PAGE", 2)
    join(store, "w-1", queues=("default",), types=("charge", "refund"))
    join(store, "w-2", queues=("mail",), types=("charge",))
    store.submit("charge")
    store.submit("refund", queue="mail")
    for _ in range(3):
        store.submit("charge", queue="mail")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert "no live worker that knows `refund` serves `mail`" in finding(found, "types")["text"]


def test_doctor_tells_a_queue_that_nobody_serves_from_a_type_that_is_not_known_there(
    lamplighter, store
):
    join(store)
    store.submit("charge", queue="mail")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "queues")["grade"] == "warning"
    assert finding(found, "types")["grade"] == "ok"


def test_doctor_warns_of_queues_of_a_worker_that_match_no_type(lamplighter, store):
    join(store, "w-1", queues=("default", "mial"))
    join(store, "w-2", queues=("mial", "default2"))
    found = json.loads(lamplighter("doctor", "--json").stdout)

    unused = finding(found, "unused")
    assert unused["grade"] == "warning"
    assert "`default2` (worker w-2), `mial` (2 workers)" in unused["text"]
    assert "for `default2`: did you mean `default`?" in unused["remedy"]


def test_doctor_does_not_warn_of_queues_in_which_jobs_come(lamplighter, store):
    join(store, "w-1", queues=("mail", "bulk"))
    store.submit("charge", queue="mail")
    # One that ran there, and is gone from the counts of what waits.
    store.succeeded(queue="bulk")
    # Every worker without --queues serves it, whatever its program has.
    join(store, "w-2", queues=("default",), types=())
    join(store, "w-3", queues=("typo",))
    store.run(lambda engine: engine.membership.leave("w-3"))
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "unused")["grade"] == "ok"


def test_doctor_finds_types_behind_more_jobs_than_it_looks_at(lamplighter, store, monkeypatch):
    monkeypatch.setattr(coordinator.outlook, "PAGE", 2)
    join(store, "gone", types=("scan",))
    with installed(datetime.now(UTC) - timedelta(minutes=1)) as clock:
        store.submit("unpublished")
        clock.advance(1)
        store.submit("scan")
    store.run(lambda engine: engine.membership.leave("gone"))
    join(store)
    for _ in range(3):
        store.submit("charge")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    # The oldest of all is looked at, and of each type that somebody has published whether it waits.
    assert "no live worker knows `scan`, `unpublished`" in finding(found, "types")["text"]


def test_doctor_finds_jobs_that_no_live_version_takes(lamplighter, store):
    schema = '{"properties": {}, "additionalProperties": false}'
    info = TypeInfo(name="charge", schema=schema, hash="h", queue="default")
    worker = NewWorker(id="w", host="here", pid=1, queues=("default",), slots=4, types=(info,))
    error = ErrorInfo(type="DoesNotFit", message="no", refusals=(Refusal(version="h", since_ms=1),))

    async def refuse(engine) -> None:
        await engine.membership.join(worker)
        (claim,) = (await store.claim(engine, "charge")).claims
        await engine.jobs.settle([settle(claim, Misfit(error))])

    store.submit("charge")
    store.run(refuse)
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert finding(found, "versions")["grade"] == "warning"
    assert "of jobs of `charge`" in finding(found, "versions")["text"]


def test_doctor_is_content_where_everything_is_served(lamplighter, store):
    join(store)
    store.submit("charge")
    found = json.loads(lamplighter("doctor", "--json").stdout)

    for check in ("workers", "running", "queues", "types", "versions", "unused"):
        assert finding(found, check)["grade"] == "ok"


def test_doctor_says_nothing_of_workers_where_there_is_no_store(lamplighter, home):
    found = json.loads(lamplighter("doctor", "--json").stdout)

    assert "workers" not in {one["check"] for one in found["findings"]}
    assert not (home / "jobs.db").exists()


def test_a_worker_tells_once_what_nobody_runs(store):
    join(store)
    store.submit("refund", queue="mail")
    told = []
    stop = events.listen(lambda name, fields: told.append((name, fields)))
    try:
        pauses = store.run(_steps)
    finally:
        stop()

    warned = [fields["text"] for name, fields in told if name == events.WORKER_WARNED]
    assert len(warned) == 2
    assert "no live worker serves `mail`" in warned[0]
    assert "no live worker knows `refund`" in warned[1]
    assert pauses == [1.0, 5.0, 3600.0]


async def _steps(engine) -> list[float]:
    fleet = Fleet()
    lookout = Lookout(engine, fleet)
    pauses = [await lookout.step()]
    fleet.joins += 1
    return [*pauses, await lookout.step(), await lookout.step()]


def test_queues_of_a_worker_that_match_no_type_are_told_of():
    app = App(settings=Settings(url=URL))

    @app.job(queue="mail")
    async def send() -> None: ...

    assert queue_list.misfits(("mail",), app.registry) == []
    (told,) = queue_list.misfits(("mial",), app.registry)
    assert "--queues names `mial`" in told
    assert "did you mean `mail`?" in told
