"""Coordinators, workers and operators at the same schedules at once: none waits for another in a
circle, each occurrence is there once, and all that is counted is there."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lamplighter.connect import connect
from lamplighter.engines.postgres import ids, records
from lamplighter.engines.postgres.address import parse
from lamplighter.model.ids import of_occurrence, schedule_key
from lamplighter.model.lifecycle import Settlement
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import claim, completed, failed, new_id, new_job
from lamplighter.port.schedules import (
    DueSchedule,
    FireAnswer,
    Fired,
    Firing,
    NewSchedule,
    Overlap,
    Run,
    RunKind,
    RunState,
    Skip,
)
from lamplighter.port.store import Engine
from tests.servers.postgres import Server, newest_server, start

Until = Callable[[Callable[[], object]], Awaitable[None]]

BY = {"by": "ada", "reason": "test"}
NIGHTLY = "nightly"
KEY = schedule_key("default", NIGHTLY)
WAITS = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
TRIGGER = """
SELECT {s}.trigger(%s, 'queue_all',
                   ROW('{{default}}', '{{2}}', '{{work}}', '{{""}}', ARRAY[%s::uuid], NULL,
                       '{{default}}', '{{1}}', '{{2}}', '{{}}', NULL, NULL, NULL, NULL, NULL, NULL,
                       %s)::{s}.job_batch,
                   %s, 'test')
"""
# Whatever is said of runs twice, once as a number and once as rows.
MISCOUNTED = """
SELECT schedule.id, good, rest, found.*
FROM {s}.schedule
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE run.state = 'succeeded') AS is_good,
           count(*) FILTER (WHERE run.state NOT IN ('succeeded', 'queued', 'started')) AS is_rest
    FROM {s}.run
    WHERE run.schedule = schedule.key
) AS found
WHERE (good, rest) <> (is_good, is_rest)
"""
# Runs that say something else than their jobs, as far as these are kept.
CONTRARY = """
SELECT run.*, any_job.state
FROM {s}.run
LEFT JOIN {s}.any_job ON any_job.id = run.job
WHERE CASE run.state
          WHEN 'queued' THEN any_job.state NOT IN ('waiting', 'running')
          WHEN 'started' THEN any_job.state NOT IN ('waiting', 'running')
          WHEN 'skipped' THEN any_job.state NOT IN ('cancelled')
          ELSE any_job.state <> run.state
      END
"""
ORPHANS = """
SELECT job.id FROM {s}.job
WHERE job.hold IS NOT NULL
  AND NOT EXISTS (SELECT FROM {s}.run WHERE run.job = job.id AND run.state = 'queued')
"""


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    one = connect(url)
    await one.open()
    yield one
    await one.close()


@pytest.fixture
def other(url: str) -> Iterator[psycopg.Connection]:
    """Somebody else, in the middle of a transaction."""
    with psycopg.connect(url.partition("?")[0]) as connection:
        ids.register(connection)
        yield connection
        connection.rollback()


def of_store(url: str, text: str) -> sql.Composed:
    return sql.SQL(text).format(s=sql.Identifier(parse(url).schema))


def new_schedule(name: str = NIGHTLY, spec: str = "{}") -> NewSchedule:
    return NewSchedule(id=name, spec=spec, tenant="default", type="work", due_ms=1)


def plan(found: DueSchedule, now_ms: int, *overlaps: Overlap, due_ms: int | None = None) -> Firing:
    """Plan as many runs, the last of them now, after a skip of what was before."""
    known = found.record
    dues = [now_ms - n for n in range(len(overlaps))][::-1]
    runs = tuple(
        Run(due_ms=due, job=job_of(known.id, due), overlap=overlap)
        for due, overlap in zip(dues, overlaps, strict=True)
        if due > known.cursor_ms
    )
    gap = dues[0] - 1 if dues else now_ms
    skips = (Skip(due_ms=gap, first_ms=known.cursor_ms + 1, reason="late", count=None),)
    return Firing(
        tenant="default",
        id=known.id,
        version=known.version,
        cursor_ms=known.cursor_ms,
        next_cursor_ms=now_ms,
        due_ms=due_ms,
        runs=runs,
        skips=skips if gap > known.cursor_ms else (),
        keep=(3, 2),
    )


def job_of(schedule: str, due_ms: int, job_id: str | None = None):
    return new_job(id=job_id or of_occurrence("default", schedule, due_ms), schedule=schedule)


# ── two at a time ────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_that_somebody_is_writing_is_passed_over_and_looked_at_soon(
    engine: Engine, url: str, other: psycopg.Connection
):
    await engine.schedules.put_schedules([new_schedule("a"), new_schedule("b")], by="ada")
    other.execute(of_store(url, "SELECT FROM {s}.schedule WHERE id = 'a' FOR UPDATE"))

    found = await engine.schedules.due_schedules(limit=5, lease_ms=60_000)
    other.commit()
    later = await engine.schedules.due_schedules(limit=5, lease_ms=60_000)

    assert [one.record.id for one in found.schedules] == ["b"]
    assert found.poll_after_ms is not None
    assert 0 < found.poll_after_ms < 100
    assert [one.record.id for one in later.schedules] == ["a"]


async def test_who_plans_while_another_run_is_queued_begins_anew(
    engine: Engine, url: str, other: psycopg.Connection, admin: psycopg.Connection, until
):
    """The job that is queued now is not locked, and it may not be locked after the schedule."""
    await engine.schedules.put_schedules([new_schedule()], by="ada")
    first = Run(due_ms=1, job=job_of(NIGHTLY, 1), kind=RunKind.TRIGGER, overlap=Overlap.SKIP)
    await engine.schedules.trigger(NIGHTLY, first, **BY)
    mark = records.mark_to_text("ada", "test")
    other.execute(of_store(url, TRIGGER), (KEY, ids.uuid(new_id()), mark, mark))

    with psycopg.connect(url.partition("?")[0], autocommit=True) as planner:
        planner.execute("SELECT set_config('search_path', %s, false)", (parse(url).schema,))
        locking = asyncio.create_task(
            asyncio.to_thread(planner.execute, "SELECT lock_plans(ARRAY[%s], '{}')", (KEY,))
        )
        await until(lambda: admin.execute(WAITS, ("%lock_plans%",)).fetchone() is not None)
        other.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            await locking


async def test_a_plan_that_was_overtaken_is_written_all_the_same(
    engine: Engine, url: str, other: psycopg.Connection, admin: psycopg.Connection, until
):
    await engine.schedules.put_schedules([new_schedule()], by="ada")
    found = await engine.schedules.due_schedules(limit=5, lease_ms=60_000)
    first = Run(due_ms=1, job=job_of(NIGHTLY, 1), kind=RunKind.TRIGGER, overlap=Overlap.SKIP)
    await engine.schedules.trigger(NIGHTLY, first, **BY)
    mark, queued = records.mark_to_text("ada", "test"), new_id()
    other.execute(of_store(url, TRIGGER), (KEY, ids.uuid(queued), mark, mark))

    firing = asyncio.create_task(
        engine.schedules.fire([plan(found.schedules[0], found.now_ms, Overlap.CANCEL_RUNNING)])
    )
    await until(lambda: admin.execute(WAITS, ("%fire%",)).fetchone() is not None)
    other.commit()

    (said,) = await firing
    assert (said.answer, said.queued) == (FireAnswer.DONE, 1)
    states = {one.job_id: one.state for one in (await engine.schedules.runs(NIGHTLY, limit=9)).runs}
    assert states[first.job.id] is RunState.CANCELLED
    assert states[queued] is RunState.SKIPPED


async def test_a_wake_that_was_written_long_ago_and_committed_late_is_seen_within_a_minute(
    url: str, admin: psycopg.Connection
):
    now = 1_700_000_000_000
    engine = connect(url, clock_ms=lambda: now)
    await engine.open()
    await engine.schedules.put_schedules([new_schedule(), new_schedule("other")], by="ada")
    await engine.schedules.due_schedules(limit=5, lease_ms=10**9)
    now += 1
    await engine.schedules.due_schedules(limit=5, lease_ms=10**9)
    admin.execute(
        of_store(url, "UPDATE {s}.schedule SET wake = %s WHERE id = 'other'"), (now - 20_000,)
    )

    soon = await engine.schedules.due_schedules(limit=5, lease_ms=1)
    now += 60_001
    later = await engine.schedules.due_schedules(limit=5, lease_ms=1)

    assert soon.schedules == []
    assert [one.record.id for one in later.schedules] == ["other"]
    await engine.close()


# ── all at once ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def quick_server(tmp_path: Path) -> Iterator[Server]:
    """A server that soon says so when two wait for each other."""
    settings = {"deadlock_timeout": "50ms"}
    with start(newest_server(), tmp_path, settings=settings, fast=True) as running:
        yield running


class Storm:
    """Everybody at few schedules, until the coordinators have had their rounds."""

    NAMES = tuple(f"s{n}" for n in range(6))
    ROUNDS = 40

    def __init__(self, engines: list[Engine]) -> None:
        self.engines = engines
        self.fired: list[tuple[Firing, Fired]] = []
        self.over = False

    async def blow(self) -> None:
        await self.put()
        others = [self.worker(0), self.worker(1), self.canceller(), self.trigger(), self.changer()]
        tasks = [asyncio.create_task(self.until_over(one)) for one in others]
        await asyncio.gather(*(self.coordinator(n) for n in (0, 1)))
        self.over = True
        await asyncio.gather(*tasks)

    async def until_over(self, steps: AsyncIterator[None]) -> None:
        async for _ in steps:
            if self.over:
                return

    async def put(self, spec: str = "{}") -> None:
        await self.engines[0].schedules.put_schedules(
            [new_schedule(name, spec) for name in self.NAMES], by="ada"
        )

    async def coordinator(self, number: int) -> None:
        chance = random.Random(number)
        store = self.engines[number].schedules
        for _ in range(self.ROUNDS):
            found = await store.due_schedules(
                limit=4, lease_ms=5, newest_first=chance.random() < 0.3
            )
            plans = [
                plan(one, found.now_ms, *chance.choices(list(Overlap), k=chance.randint(0, 3)),
                     due_ms=found.now_ms + 1)
                for one in found.schedules
            ]  # fmt: skip
            chance.shuffle(plans)
            self.fired += zip(plans, await store.fire(plans), strict=True)
            await asyncio.sleep(0.002)

    async def worker(self, number: int) -> AsyncIterator[None]:
        chance = random.Random(10 + number)
        engine = self.engines[number]
        while True:
            taken = await claim(engine, 8)
            ends: list[Settlement] = [
                chance.choice((completed, failed, self._dead))(one) for one in taken
            ]
            chance.shuffle(ends)
            await engine.jobs.settle(ends)
            yield

    def _dead(self, taken) -> Settlement:
        return failed(taken, retry=Retry(max_attempts=1))

    async def canceller(self) -> AsyncIterator[None]:
        chance = random.Random(20)
        engine = self.engines[1]
        while True:
            found = [
                run.job_id
                for name in chance.sample(self.NAMES, 3)
                for run in (await engine.schedules.runs(name, limit=4)).runs
                if run.job_id is not None
            ]
            verb = chance.choice(("cancel", "replay", "retry", "purge", "unhold"))
            await getattr(engine.jobs, verb)(found, **BY)
            yield

    async def trigger(self) -> AsyncIterator[None]:
        chance = random.Random(30)
        while True:
            name, overlap = chance.choice(self.NAMES), chance.choice(list(Overlap))
            job = job_of(name, 0, new_id())
            wish = Run(due_ms=1, job=job, kind=RunKind.TRIGGER, overlap=overlap)
            await self.engines[0].schedules.trigger(name, wish, **BY)
            yield

    async def changer(self) -> AsyncIterator[None]:
        chance = random.Random(40)
        store = self.engines[0].schedules
        while True:
            some = chance.sample(self.NAMES, 3)
            await store.hold_schedules(some, **BY)
            await store.unhold_schedules(some[::-1], **BY)
            await self.put(f"{chance.random()}")
            if chance.random() < 0.2:
                await store.delete_schedules(some[:1], **BY)
                await self.put()
            yield


async def test_whatever_happens_to_schedules_at_once_nobody_waits_in_a_circle(
    quick_server: Server,
):
    url = quick_server.url(durability="none", schema="storm")
    engines = [connect(url) for _ in range(2)]
    for one in engines:
        await one.open()
    storm = Storm(engines)

    await storm.blow()

    answers = [said.answer for _, said in storm.fired]
    assert FireAnswer.DONE in answers
    with quick_server.connect() as admin:
        for question in (MISCOUNTED, CONTRARY, ORPHANS):
            assert admin.execute(of_store(url, question)).fetchall() == [], question
    for one in engines:
        await one.close()
    assert "deadlock detected" not in quick_server.log.read_text()


async def test_two_coordinators_make_each_occurrence_once(url: str):
    engines = [connect(url) for _ in range(2)]
    for one in engines:
        await one.open()
    names = [f"s{n}" for n in range(300)]
    await engines[0].schedules.put_schedules([new_schedule(name) for name in names], by="ada")

    async def coordinate(engine: Engine) -> list[str]:
        """Plan what is due, and fire it twice: a pause must not make it happen again."""
        started: list[str] = []
        while True:
            found = await engine.schedules.due_schedules(limit=7, lease_ms=60_000)
            if not found.schedules and found.poll_after_ms is None:
                return started
            plans = [plan(one, found.now_ms, Overlap.SKIP) for one in found.schedules]
            for said in (await engine.schedules.fire(plans), await engine.schedules.fire(plans)):
                started += [job for one in said for job in one.started]

    taken = await asyncio.gather(*(coordinate(one) for one in engines))

    assert all(taken)
    made = [job for part in taken for job in part]
    assert len(made) == len(set(made)) == len(names)
    for name in names:
        told = await engines[0].schedules.schedule(name)
        assert told is not None
        assert told.fired == 1
    handed = await claim(engines[0], 400)
    assert sorted(one.job.id for one in handed) == sorted(made)
    for one in engines:
        await one.close()
