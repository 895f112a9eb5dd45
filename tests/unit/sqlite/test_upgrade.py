"""A store of an older version is refused with the remedy, and migrating it loses nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lamplighter.connect import connect
from lamplighter.engines.sqlite import database
from lamplighter.model.errors import StoreOlder
from lamplighter.model.ids import compose
from lamplighter.model.job import Fence, JobState, Status
from lamplighter.model.journal import Journal, Progress
from lamplighter.port.conformance.builders import (
    BOOM,
    completed,
    handed_out,
    key,
    logged,
    new_job,
    pieces,
    record,
    recording,
    request,
    settle_one,
)
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.schedule_builders import (
    look,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
)
from lamplighter.port.schedules import RunState
from lamplighter.port.values import Recording, SettleAnswer, SubmitAnswer, Submitted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}
LEFT_AT_MS = 1_700_000_013_500
DEAD, SUCCEEDED, RETRYING, RUNNING, READY, ALSO_READY, LATER, CANCELLED, HELD = (
    compose(1_700_000_000_000, 0, number) for number in range(1, 10)
)
STATUSES = {
    DEAD: Status.DEAD,
    SUCCEEDED: Status.SUCCEEDED,
    RETRYING: Status.RETRYING,
    RUNNING: Status.RUNNING,
    READY: Status.READY,
    ALSO_READY: Status.READY,
    LATER: Status.SCHEDULED,
    CANCELLED: Status.CANCELLED,
    HELD: Status.PAUSED,
}


@pytest.fixture
def clock() -> VirtualClock:
    clock = VirtualClock()
    clock.advance(ms=LEFT_AT_MS - clock.now_ms())
    return clock


@pytest.fixture
def old(path: Path) -> Path:
    """A file of version 1, as its program wrote it."""
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name("version_1.sql").read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA application_id = {database.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    return path


@pytest.fixture
async def engine(old: Path, clock: VirtualClock) -> AsyncIterator[Engine]:
    """The same file, migrated and opened."""
    migrated = connect(f"sqlite:///{old}", clock_ms=clock.now_ms)
    assert await migrated.migrate() == (1, len(database.migrations()))
    await migrated.open()
    yield migrated
    await migrated.close()


def schema(path: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
    connection.close()
    return found


async def test_an_older_store_is_refused_untouched_and_says_to_migrate(old: Path) -> None:
    before = schema(old)

    with pytest.raises(StoreOlder) as caught:
        await connect(f"sqlite:///{old}").open()

    assert "has version 1" in caught.value.cause
    assert f"lamplighter migrate --url sqlite:///{old}" in caught.value.hint
    assert schema(old) == before


async def test_a_migrated_store_has_the_shape_of_a_new_one(
    engine: Engine, old: Path, tmp_path: Path
) -> None:
    database.prepare(tmp_path / "new.db", lambda: 0, migrate=False)

    assert schema(old) == schema(tmp_path / "new.db")


@pytest.mark.parametrize("version", range(1, len(database.migrations())))
async def test_a_store_of_any_older_version_is_migrated_with_its_jobs(
    old: Path, tmp_path: Path, clock: VirtualClock, version: int
) -> None:
    steps = database.migrations()
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript("".join(steps[1:version]))
        connection.execute(f"PRAGMA user_version = {version}")
    database.prepare(tmp_path / "new.db", lambda: 0, migrate=False)

    migrated = connect(f"sqlite:///{old}", clock_ms=clock.now_ms)
    assert await migrated.migrate() == (version, len(steps))

    await migrated.open()
    found = {job_id: (await record(migrated, job_id)).status for job_id in STATUSES}
    await migrated.close()
    assert found == STATUSES
    assert schema(old) == schema(tmp_path / "new.db")


async def test_migrating_again_changes_nothing(engine: Engine, old: Path) -> None:
    newest = len(database.migrations())

    assert await connect(f"sqlite:///{old}").migrate() == (newest, newest)
    assert (await record(engine, DEAD)).state is JobState.DEAD


async def test_every_job_is_as_it_was(engine: Engine) -> None:
    found = {job_id: await record(engine, job_id) for job_id in STATUSES}

    assert {job_id: one.status for job_id, one in found.items()} == STATUSES
    assert [one.job.args for one in found.values()] == [b'{"n": %d}' % n for n in range(1, 10)]
    assert (found[SUCCEEDED].result, found[DEAD].error) == (b'"done"', BOOM)
    assert {one.progress for one in found.values()} == {None}
    again = await engine.jobs.submit([new_job(key=key("order-1"))])
    assert again == [Submitted(DEAD, SubmitAnswer.ALREADY)]


async def test_waiting_jobs_are_handed_out_in_their_order(
    engine: Engine, clock: VirtualClock
) -> None:
    assert await handed_out(engine, 10) == [ALSO_READY, READY]
    clock.advance(seconds=10)
    assert await handed_out(engine, 10) == [RETRYING]
    await engine.jobs.unhold([HELD], **BY)
    assert await handed_out(engine, 10) == [HELD]
    clock.advance(seconds=3_600)
    assert await handed_out(engine, 10) == [LATER]


async def test_a_worker_that_ran_through_the_upgrade_goes_on(engine: Engine) -> None:
    (taken,) = await engine.jobs.claims_of("worker-1")
    assert (taken.job.id, taken.fence) == (RUNNING, Fence(1, f"{5:016x}"))
    assert (await engine.jobs.claim(request(nonce=taken.fence.nonce))).claims == [taken]

    await engine.jobs.record([recording(taken, "still here")])
    answer = await settle_one(engine, completed(taken))

    assert answer.answer is SettleAnswer.DONE
    assert await logged(engine, RUNNING) == ["still here"]


async def test_its_lease_ends_when_it_was_to_end(engine: Engine, clock: VirtualClock) -> None:
    clock.advance(ms=29_999)
    assert await engine.jobs.rescue(10) == []
    clock.advance(ms=1)

    assert [one.claim.job.id for one in await engine.jobs.rescue(10)] == [RUNNING]


async def test_attempts_are_kept_without_the_nonce_nobody_wrote_down(engine: Engine) -> None:
    dead = await engine.inspector.attempts(DEAD)
    (succeeded,) = await engine.inspector.attempts(SUCCEEDED)
    (running,) = await engine.inspector.attempts(RUNNING)

    assert [(one.number, one.lease, one.nonce, one.outcome) for one in dead] == [
        (1, 1, "", "failed"),
        (2, 2, "", "failed"),
    ]
    assert (succeeded.nonce, succeeded.outcome) == (f"{3:016x}", "succeeded")
    assert (running.nonce, running.outcome) == (f"{5:016x}", "running")
    assert await engine.inspector.attempts(CANCELLED) == []


async def test_a_dead_job_runs_again(engine: Engine) -> None:
    await engine.jobs.cancel([READY, ALSO_READY], **BY)
    await engine.jobs.replay([DEAD, SUCCEEDED], **BY)
    first, second = (await engine.jobs.claim(request(limit=10))).claims
    said = Journal(progress=Progress(done=1), pieces=pieces("again"))

    await engine.jobs.record([Recording(first.job.id, first.fence, said)])

    assert [first.job.id, second.job.id] == [DEAD, SUCCEEDED]
    assert (first.fence.lease, first.job.generation) == (3, 1)
    assert (await record(engine, DEAD)).progress == Progress(done=1)
    outcomes = [one.outcome for one in await engine.inspector.attempts(SUCCEEDED)]
    assert outcomes == ["succeeded", "running"]


async def test_a_migrated_store_keeps_schedules_beside_its_jobs(
    engine: Engine, clock: VirtualClock
) -> None:
    due = clock.now_ms()
    await put(engine, new_schedule(due_ms=due))
    (found,) = (await look(engine)).schedules

    await engine.schedules.fire([plan_of(found.record, run_at(due))])

    made = run_at(due).job.id
    assert await handed_out(engine, 10) == [ALSO_READY, READY, made]
    assert [(run.job_id, run.state) for run in await runs_of(engine)] == [(made, RunState.STARTED)]


async def test_jobs_from_before_there_were_schedules_end_as_they_did(engine: Engine) -> None:
    await put(engine, new_schedule())
    (taken,) = await engine.jobs.claims_of("worker-1")

    await settle_one(engine, completed(taken))
    await engine.jobs.cancel([READY, LATER], **BY)
    await engine.jobs.replay([DEAD], **BY)

    assert (await record(engine, RUNNING)).state is JobState.SUCCEEDED
    assert (await record(engine, DEAD)).state is JobState.WAITING
    assert await runs_of(engine) == []
    assert (await look(engine)).schedules == []
