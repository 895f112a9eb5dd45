"""What schedules cost in SQLite does not grow with those at rest, nor with what they leave."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from lamplighter.connect import connect
from lamplighter.engines.sqlite import database
from lamplighter.engines.sqlite.catalog import Catalog
from lamplighter.engines.sqlite.transaction import Transaction
from lamplighter.engines.sqlite.verbs.fire import due_schedules
from lamplighter.engines.sqlite.verbs.fire import fire as fire_plans
from lamplighter.engines.sqlite.verbs.schedules import put_schedules
from lamplighter.port.conformance.builders import claim_one, completed, settle_one
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.schedule_builders import (
    BY,
    MINUTE,
    NIGHTLY,
    at,
    backfill_of,
    end,
    fire,
    known,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
    skip_of,
)
from lamplighter.port.schedules import FireAnswer, Overlap, RunState
from lamplighter.port.values import Retention

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from lamplighter.port.schedules import DueSchedules
    from lamplighter.port.store import Engine

AT_REST = 100_000
NOW = at(60)
KEEP = Retention(finished_ms=1 << 40, finished_count=1 << 40, dead_ms=1 << 40, key_ms=1 << 40)

# Schedules with a history: due tomorrow, or overdue but held.
FILLED = """
WITH RECURSIVE given(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM given WHERE n < ?1)
INSERT INTO schedule (id, spec, tenant, type, cursor, due, wake, created, changed, zones, hold)
SELECT printf('rest %06d', n), 'spec', 'default', 'work', ?2, ?2, ?2, 0, 0, '', ?3 FROM given
"""
RUNS = """
INSERT INTO run (schedule, due, kind, state, at, job_id, count)
SELECT number, 1, 'due', 'succeeded', 1, 'job ' || number, 1 FROM schedule
UNION ALL
SELECT number, 2, 'backfill', 'started', 1, 'past ' || number, 1 FROM schedule
"""


class Bench:
    """A store without an engine around it, in which the steps of SQLite are counted."""

    def __init__(self, path: Path) -> None:
        path.touch()
        database.prepare(path, lambda: NOW, migrate=False)
        self.connection = database.open_connection(path, lambda: NOW, writer=True)
        self._catalog = Catalog()
        self._steps = 0

    def fill(self, count: int) -> None:
        self.connection.execute("BEGIN")
        self.connection.execute(FILLED, (count, NOW + 86_400_000, None))
        self.connection.execute(FILLED.replace("'rest", "'held"), (count // 10, 0, "{}"))
        self.connection.execute(RUNS)
        self.connection.execute("COMMIT")

    def run(self, work: Callable[[Transaction], Any]) -> Any:
        self.connection.execute("BEGIN IMMEDIATE")
        answer = work(Transaction(self.connection, self._catalog))
        self.connection.execute("COMMIT")
        return answer

    def steps(self, work: Callable[[Transaction], Any]) -> int:
        """Tell how many steps of SQLite's machine something takes."""
        before = self._steps
        self.connection.set_progress_handler(self._count, 1)
        self.run(work)
        self.connection.set_progress_handler(None, 0)
        return self._steps - before

    def _count(self) -> int:
        self._steps += 1
        return 0


def put_due(bench: Bench, count: int) -> None:
    due = [new_schedule(f"due {n:03}", due_ms=at(n)) for n in range(count)]
    bench.run(lambda tx: put_schedules(tx, due))


def steps_of_a_round(path: Path, at_rest: int, *, newest_first: bool) -> tuple[int, int, int]:
    """Hand out ten of forty, fire them, then look when there is nothing; the steps of each."""
    bench = Bench(path)
    with closing(bench.connection):
        bench.fill(at_rest)
        put_due(bench, 40)
        found: list[DueSchedules] = []

        def hand_out(tx: Transaction) -> None:
            found.append(due_schedules(tx, 10, 30_000, newest_first=newest_first))

        handing_out = bench.steps(hand_out)
        plans = [
            plan_of(
                due.record,
                run_at(NOW, Overlap.QUEUE_ONE, schedule=due.record.id),
                skips=[skip_of(at(50), at(59), count=10)],
                due_ms=at(120),
            )
            for due in found[0].schedules
        ]
        assert len(plans) == 10
        firing = bench.steps(lambda tx: fire_plans(tx, plans))
        bench.run(lambda tx: due_schedules(tx, 100, 30_000, newest_first=newest_first))
        idle = bench.steps(hand_out)
        assert found[-1].schedules == []
        return handing_out, firing, idle


@pytest.mark.parametrize("newest_first", [False, True])
def test_firing_costs_the_same_however_many_schedules_are_at_rest(
    tmp_path: Path, *, newest_first: bool
) -> None:
    few = steps_of_a_round(tmp_path / "few.db", 100, newest_first=newest_first)
    many = steps_of_a_round(tmp_path / "many.db", AT_REST, newest_first=newest_first)

    for less, more in zip(few, many, strict=True):
        assert more <= less * 1.1, (few, many)
    assert max(many) < 10_000


def test_handing_out_costs_as_much_as_is_handed_out(tmp_path: Path) -> None:
    costs: list[int] = []
    for limit in (10, 100):
        bench = Bench(tmp_path / f"{limit}.db")
        with closing(bench.connection):
            put_due(bench, 500)

            def hand_out(tx: Transaction, limit: int = limit) -> DueSchedules:
                return due_schedules(tx, limit, 30_000, newest_first=False)

            costs.append(bench.steps(hand_out))

    assert 5 * costs[0] < costs[1] < 15 * costs[0]


# ── what schedules leave behind ──────────────────────────────────────────────────────────────


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def engine(path: Path, clock: VirtualClock) -> AsyncIterator[Engine]:
    opened = connect(f"sqlite:///{path}", clock_ms=clock.now_ms)
    await opened.open()
    yield opened
    await opened.close()


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def test_runs_of_schedules_that_are_gone_are_removed_in_bounded_steps(
    engine: Engine, path: Path
) -> None:
    names = await put(engine, *(new_schedule(f"s{n}") for n in range(4)))
    for name in names:
        await fire(engine, *(run_at(at(n), schedule=name) for n in range(1, 6)), schedule=name)
    await engine.schedules.delete_schedules(names[:3], **BY)
    assert rows(path, "run") == 20

    first = await engine.jobs.prune(KEEP, 7)
    assert (first.others, first.more, rows(path, "run")) == (7, True, 13)
    while (await engine.jobs.prune(KEEP, 7)).more:
        pass

    assert (rows(path, "run"), rows(path, "removed_schedule")) == (5, 0)
    assert len(await runs_of(engine, names[3])) == 5


@pytest.mark.parametrize("pruned", [False, True])
async def test_a_schedule_has_nothing_of_one_that_had_its_name(
    engine: Engine, *, pruned: bool
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)), run_at(at(2)))
    taken = await claim_one(engine)
    await engine.schedules.delete_schedules([NIGHTLY], **BY)
    await put(engine, new_schedule())
    if pruned:
        await engine.jobs.prune(KEEP, 100)
    before = await known(engine)
    assert await runs_of(engine) == []

    await settle_one(engine, completed(taken))

    assert await known(engine) == before
    assert await runs_of(engine) == []
    looked = await engine.schedules.due_schedules(limit=10, lease_ms=1_000)
    assert looked.schedules == []


async def test_a_run_whose_job_had_ended_before_it_was_made_has_that_end(
    engine: Engine, clock: VirtualClock
) -> None:
    await put(engine, new_schedule())
    await fire(engine, run_at(at(1), run_at_ms=at(0)))
    await end(engine)
    ended_at = clock.now_ms()
    await engine.schedules.delete_schedules([NIGHTLY], **BY)
    await put(engine, new_schedule())
    clock.advance(ms=MINUTE)

    said = await fire(engine, run_at(at(1), Overlap.SKIP), run_at(at(2), Overlap.SKIP))

    assert said.started == (run_at(at(2)).job.id,)
    again, fresh = await runs_of(engine)
    assert (again.state, again.finished_at_ms) == (RunState.SUCCEEDED, ended_at)
    assert fresh.state is RunState.STARTED


async def test_a_plan_made_before_a_backfill_was_asked_for_does_not_end_it(
    engine: Engine,
) -> None:
    await put(engine, new_schedule())
    plan = plan_of(await known(engine), run_at(at(1)))
    wanted = backfill_of(at(-9), at(-1))
    await engine.schedules.backfill(NIGHTLY, wanted, **BY)

    (said,) = await engine.schedules.fire([plan])

    assert said.answer is FireAnswer.STALE
    assert (await known(engine)).backfill == wanted
