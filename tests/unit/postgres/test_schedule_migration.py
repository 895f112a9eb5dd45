"""A store that knew nothing of schedules learns of them, and keeps the jobs it has."""

from collections.abc import Iterator
from importlib import resources

import psycopg
import pytest

from lamplighter.engines.postgres import statements
from lamplighter.engines.postgres.address import parse
from lamplighter.engines.postgres.engine import PostgresEngine
from lamplighter.model.errors import StoreOlder
from lamplighter.model.job import JobState
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    claim_one,
    completed,
    failed,
    new_id,
    new_job,
    submit,
)
from lamplighter.port.schedules import NewSchedule, PutAnswer, ScheduleFilter
from lamplighter.port.values import JobFilter

NEWEST = len(statements.migrations())
SINCE = (
    "activity",
    "audit",
    "backfill",
    "delete_schedules",
    "due_schedules",
    "fire",
    "hold_schedules",
    "inspect_schedules",
    "judge",
    "overview",
    "plans",
    "prune_access",
    "put_schedules",
    "runs",
    "tokens",
    "trigger",
    "unhold_schedules",
)
"""Files with functions that came later, or look at tables that did."""


@pytest.fixture
def runner(admin: psycopg.Connection, url: str) -> Iterator[str]:
    """A user who may run jobs, once somebody lets him."""
    name = f"runner_{parse(url).schema}"
    admin.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    admin.execute(f"DROP OWNED BY {name} CASCADE")
    admin.execute(f"DROP ROLE {name}")


def older(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a program of the first version: one migration, and no functions for schedules."""
    folder = resources.files("lamplighter.engines.postgres").joinpath("sql")
    first = statements.migrations()[:1]
    known = {one.name.removesuffix(".sql"): one for one in folder.iterdir()}
    names = ["clock", "turns", "claim"]
    names += sorted(known.keys() - {*names, *SINCE})
    files = tuple(known[name].read_text(encoding="utf-8") for name in names)
    monkeypatch.setattr(statements, "migrations", lambda: first)
    monkeypatch.setattr(statements, "_functions", lambda: files)
    monkeypatch.setattr(statements, "fingerprint", lambda: 1)


async def fill(engine: PostgresEngine) -> dict[str, JobState]:
    """Leave a job in every state; one of them names a schedule that nobody knows."""
    ids = [new_id() for _ in range(5)]
    found = dict.fromkeys(ids, JobState.WAITING)
    await submit(engine, new_job(id=ids[0]), new_job(id=ids[1]), new_job(id=ids[2]))
    for how, state in (
        (completed, JobState.SUCCEEDED),
        (lambda one: failed(one, retry=Retry(max_attempts=1)), JobState.DEAD),
    ):
        taken = await claim_one(engine)
        await engine.jobs.settle([how(taken)])
        found[taken.job.id] = state
    found[(await claim_one(engine)).job.id] = JobState.RUNNING
    await submit(engine, new_job(id=ids[3], held=True), new_job(id=ids[4], schedule="before"))
    return found


async def states(engine: PostgresEngine) -> dict[str, JobState]:
    page = await engine.inspector.jobs(JobFilter(), limit=100)
    return {one.job.id: one.state for one in page.jobs}


async def test_a_store_of_the_first_version_keeps_its_jobs_and_learns_of_schedules(
    url: str, runner: str
):
    with pytest.MonkeyPatch.context() as monkeypatch:
        older(monkeypatch)
        before = PostgresEngine(url)
        assert await before.migrate(run=[runner]) == (0, 1)
        await before.open()
        expected = await fill(before)
        assert await states(before) == expected
        await before.close()

    with pytest.raises(StoreOlder, match="lamplighter migrate"):
        await PostgresEngine(url).open()
    assert await PostgresEngine(url).migrate() == (1, NEWEST)

    # Whoever could run jobs can run schedules, too.
    engine = PostgresEngine(url.replace("//postgres@", f"//{runner}@"))
    await engine.open()
    assert await states(engine) == expected
    (going_on,) = await engine.jobs.claims_of("worker-1")
    await engine.jobs.settle([completed(going_on)])
    named = await claim_one(engine)
    assert named.job.schedule == "before"
    await engine.jobs.settle([completed(named)])
    assert list((await states(engine)).values()).count(JobState.SUCCEEDED) == 3
    assert (await engine.schedules.schedules(ScheduleFilter(), limit=9)).schedules == []
    wanted = NewSchedule(id="nightly", spec="{}", tenant="default", type="work", due_ms=1)
    (said,) = await engine.schedules.put_schedules([wanted], by="ada")
    assert said.answer is PutAnswer.CREATED
    found = await engine.schedules.due_schedules(limit=5, lease_ms=1_000)
    assert [one.record.id for one in found.schedules] == ["nightly"]
    await engine.close()


async def test_a_migrated_store_has_the_parts_of_a_new_one(url: str):
    with pytest.MonkeyPatch.context() as monkeypatch:
        older(monkeypatch)
        await PostgresEngine(url).migrate()
    await PostgresEngine(url).migrate()

    said = await PostgresEngine(url).check_up()

    found = {one.check: one.grade for one in said.findings}
    assert (found["schema"], found["parts"]) == ("ok", "ok"), said
