"""Finished jobs stand in tables by the day, which go whole when their time is over."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.port.conformance.builders import (
    claim_one,
    completed,
    failed,
    finished,
    logged,
    record,
    recording,
    running,
    settle_one,
)
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.store import Engine
from lamplighter.port.values import Pruned, Retention

DAY_MS = 86_400_000
TODAY = 20_000
WEEK = Retention(finished_ms=7 * DAY_MS)
NAMES = ["done_20241004", "done_20241005", "done_20241006", "done_20241007"]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(TODAY * DAY_MS + 1)


@pytest.fixture
async def engine(url: str, clock: VirtualClock) -> AsyncIterator[Engine]:
    opened = connect(url, clock_ms=clock.now_ms)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def inside(engine: Engine, url: str, admin: psycopg.Connection) -> psycopg.Connection:
    """A connection that looks into the engine's own schema."""
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    admin.execute("SELECT set_config('search_path', %s, false)", (schema,))
    return admin


async def test_the_tables_of_today_and_the_next_three_days_are_made_once(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    await engine.jobs.prune(WEEK, 100)
    assert _days(inside) == NAMES

    clock.advance(ms=DAY_MS)
    await engine.jobs.prune(WEEK, 100)
    await engine.jobs.prune(WEEK, 100)

    assert _days(inside) == [*NAMES, "done_20241008"]


async def test_what_finished_before_its_day_was_made_stays_and_goes_by_its_age(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    early = await finished(engine)

    await engine.jobs.prune(WEEK, 100)
    assert _days(inside) == NAMES[1:]

    clock.advance(ms=7 * DAY_MS)
    assert (await engine.jobs.prune(WEEK, 100)).jobs == 0
    clock.advance(ms=1)
    assert (await engine.jobs.prune(WEEK, 100)).jobs == 1
    assert await engine.inspector.job(early.job.id) is None


async def test_a_day_goes_whole_when_its_last_instant_is_past_the_retention(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    await engine.jobs.prune(WEEK, 100)
    ended = [await finished(engine) for _ in range(3)]
    clock.set((TODAY + 8) * DAY_MS - 1)
    assert (await engine.jobs.prune(WEEK, 100)).jobs == 0
    assert (await record(engine, ended[0].job.id)).finished_at_ms is not None

    clock.advance(ms=1)
    pruned = await engine.jobs.prune(WEEK, 100)

    assert pruned.jobs == 3
    assert NAMES[0] not in _days(inside)
    assert [one for one in ended if await engine.inspector.job(one.job.id)] == []


async def test_jobs_with_a_story_leave_a_day_with_it_before_the_others(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    await engine.jobs.prune(WEEK, 100)
    plain = await finished(engine)
    wordy = await running(engine)
    await engine.jobs.record([recording(wordy, "a line")])
    await settle_one(engine, completed(wordy))
    stubborn = await running(engine)
    await settle_one(engine, failed(stubborn))
    clock.advance(seconds=10)
    await settle_one(engine, completed(await claim_one(engine)))
    last = await finished(engine)
    clock.set((TODAY + 8) * DAY_MS)

    steps = [await engine.jobs.prune(WEEK, 3) for _ in range(2)]

    assert [(step.jobs, step.more) for step in steps] == [(3, True), (1, True)]
    for gone in (plain, wordy, stubborn, last):
        assert await engine.inspector.job(gone.job.id) is None
        assert await engine.inspector.attempts(gone.job.id) == []
        assert await logged(engine, gone.job.id) == []
    assert NAMES[0] not in _days(inside)


async def test_a_job_that_is_replayed_while_its_day_is_being_removed_keeps_its_story(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.jobs.prune(WEEK, 100)
    plain, wordy = await finished(engine), await running(engine)
    await engine.jobs.record([recording(wordy, "a line")])
    await settle_one(engine, completed(wordy))
    clock.set((TODAY + 8) * DAY_MS)
    assert (await engine.jobs.prune(WEEK, 1)).more

    ids = [plain.job.id, wordy.job.id]
    await engine.jobs.replay(ids, by="test", reason="again")
    while (await engine.jobs.prune(WEEK, 1)).more:
        pass

    assert [(await record(engine, one)).state for one in ids] == ["waiting", "waiting"]
    assert await logged(engine, wordy.job.id) == ["a line"]
    assert len(await engine.inspector.attempts(plain.job.id)) == 1


async def test_less_than_a_day_is_kept_to_the_millisecond(
    engine: Engine, clock: VirtualClock
) -> None:
    hour = Retention(finished_ms=3_600_000)
    await engine.jobs.prune(hour, 100)
    await finished(engine)
    clock.advance(ms=1)
    await finished(engine)
    clock.advance(ms=3_600_000)

    assert (await engine.jobs.prune(hour, 100)).jobs == 1


async def test_too_many_jobs_go_oldest_first_wherever_they_stand(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    early = [await finished(engine) for _ in range(2)]
    await engine.jobs.prune(WEEK, 100)
    days = [early]
    for _ in range(2):
        clock.advance(ms=DAY_MS)
        days.append([await finished(engine) for _ in range(2)])
    clock.advance(ms=DAY_MS)

    for kept in (4, 3, 1):
        while (await engine.jobs.prune(Retention(finished_count=kept), 100)).more:
            pass
        left = [one.job.id for day in days for one in day if await _exists(engine, one.job.id)]
        assert left == [one.job.id for day in days for one in day][-kept:]
    assert NAMES[1] not in _days(inside)


async def test_a_day_in_use_is_left_for_later_and_nobody_waits_for_it_long(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    await engine.jobs.prune(WEEK, 100)
    await finished(engine)
    clock.set((TODAY + 8) * DAY_MS)

    with inside.transaction():
        inside.execute("SELECT count(*) FROM done")
        assert not (await engine.jobs.prune(WEEK, 100)).more
        assert NAMES[0] in _days(inside)
    while (await engine.jobs.prune(WEEK, 100)).more:
        pass

    assert NAMES[0] not in _days(inside)
    assert await engine.jobs.prune(WEEK, 100) == Pruned()


async def test_the_function_that_drops_a_day_refuses_all_but_old_days(
    engine: Engine, inside: psycopg.Connection, clock: VirtualClock
) -> None:
    await engine.jobs.prune(WEEK, 100)
    inside.execute("CREATE TABLE done_19990101 (LIKE done)")
    now = str(clock.now_ms())
    inside.execute("SELECT set_config('lamplighter.now', %s, false)", (now,))

    for given in (NAMES[0], NAMES[3], "done_19990101", "job", "done_other"):
        assert inside.execute("SELECT drop_day(%s)", (given,)).fetchone() == (False,)

    assert _days(inside) == NAMES


async def _exists(engine: Engine, job_id: str) -> bool:
    return await engine.inspector.job(job_id) is not None


def _days(inside: psycopg.Connection) -> list[str]:
    return [row[0] for row in inside.execute("SELECT name FROM days()")]
