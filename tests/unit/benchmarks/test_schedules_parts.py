"""The parts about schedules: what they compare, and what they call too much."""

import pytest

from benchmarks.engines import SqliteStore
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost
from benchmarks.gauges import Start
from benchmarks.parts import schedules_due, schedules_missed, schedules_put, schedules_rest
from benchmarks.parts.schedules_rest import Ticks
from benchmarks.scale import FULL, QUICK, Bench
from lamplighter.port.schedules import Firing, Put, PutAnswer, Skip

MS = 1_000_000
DUE_MS = 10_000
AHEAD = 7_000
"""By how many milliseconds the wall clock of these tests is ahead of the other one."""


def marks(lines):
    return [line.mark for line in lines]


def start(number: int, at_ms: int) -> Start:
    return Start(number=number, monotonic_ns=(at_ms - AHEAD) * MS, wall_ns=at_ms * MS)


def call(at_ms: int) -> int:
    return (at_ms - AHEAD) * MS


# ── due at one instant ───────────────────────────────────────────────────────────────────────

STARTS = [start(0, DUE_MS + 30), start(1, DUE_MS + 700), start(2, DUE_MS + 900)]
CREATED = [DUE_MS + 20, DUE_MS + 600, DUE_MS + 400]


def test_all_are_fired_when_the_last_job_is_in_the_store_and_not_when_it_has_run():
    found = schedules_due.told([*STARTS, start(3, 10_150)], {3: call(10_100)}, CREATED, 3, DUE_MS)

    assert found["fired_s"] == 0.6
    assert found["ran_s"] == 0.9
    assert found["early"] == 0
    assert found["critical_p99_ms"] == 50


def test_critical_jobs_count_while_schedules_are_fired_however_long_they_waited():
    starts = [*STARTS, start(3, 9_950), start(4, 11_590), start(5, 10_700)]
    called = {3: call(9_940), 4: call(10_590), 5: call(10_610)}

    found = schedules_due.told(starts, called, CREATED, 3, DUE_MS)

    assert found["critical"] == 1
    assert found["critical_max_ms"] == 1_000


def test_a_schedule_without_its_job_or_with_two_is_an_error():
    starts, called = [*STARTS, start(3, 10_150)], {3: call(10_100)}
    for wrong in (CREATED[:2], [*CREATED, DUE_MS + 5]):
        with pytest.raises(BenchmarkError, match="3 schedules"):
            schedules_due.told(starts, called, wrong, 3, DUE_MS)
    with pytest.raises(BenchmarkError, match="3 jobs"):
        schedules_due.told([*starts, start(1, 10_800)], called, CREATED, 3, DUE_MS)


def test_a_critical_job_that_is_lost_is_an_error():
    with pytest.raises(BenchmarkError, match="2 critical jobs"):
        schedules_due.told(
            [*STARTS, start(3, 10_150)], {3: call(10_100), 4: call(10_200)}, CREATED, 3, DUE_MS
        )


def test_a_firing_without_critical_jobs_has_measured_nothing():
    with pytest.raises(BenchmarkError, match="no critical job"):
        schedules_due.told(STARTS, {}, CREATED, 3, DUE_MS)


@pytest.mark.parametrize(("engine", "most"), [("sqlite", 15), ("postgres", 10), ("redis", 10)])
def test_each_engine_has_its_time_to_fire_them(engine, most):
    part = {
        "schedules": 50_000,
        "early": 0,
        "ran_s": 20.0,
        "critical": 400,
        "critical_p50_ms": 9.0,
        "cpu_us": 400.0,
        "most_s": schedules_due.FIRED_S[engine],
    }

    kept = schedules_due.lines(part | {"fired_s": most, "critical_p99_ms": 200.0})
    missed = schedules_due.lines(part | {"fired_s": most + 0.1, "critical_p99_ms": 201.0})

    assert marks(kept) == ["ok", "ok", "", "", "", "ok"]
    assert marks(missed) == ["ok", "MISSED", "", "", "", "MISSED"]
    assert kept[1].wanted == f"≤ {most} s (aim 5)"


def test_the_cost_is_that_of_all_processes_for_each_schedule():
    found = schedules_due.costs(Cost(4, 2.0, {"supervisor": 800_000, "store": 400_000}))

    assert found == {"cpu_us": 300.0, "cpu_us_by_role": {"supervisor": 200.0, "store": 100.0}}


# ── at rest ──────────────────────────────────────────────────────────────────────────────────


def test_ticks_are_compared_with_their_neighbours():
    few = [Ticks(1_000, 100), Ticks(2_000, 100), Ticks(1_000, 100)]
    many = [Ticks(1_200, 100), Ticks(2_200, 900), Ticks(1_300, 160)]

    found = schedules_rest.told(list(zip(few, many, strict=True)))

    assert found == {
        "tick_ratio": 1.2,
        "tick_us": [1_000, 1_300],
        "idle_ratio": 1.6,
        "idle_us": [100, 160],
    }


def test_both_ticks_and_the_memory_have_a_budget():
    part = {"schedules": [1_000, 1_000_000], "tick_us": [900.0, 1_350.0], "idle_us": [90.0, 135.0]}
    kept = {"tick_ratio": 1.5, "idle_ratio": 1.5, "coordinator_mb": 200.0}
    missed = {"tick_ratio": 1.51, "idle_ratio": 1.51, "coordinator_mb": 201.0}

    assert marks(schedules_rest.lines(part | kept)) == ["ok"] * 3
    assert marks(schedules_rest.lines(part | missed)) == ["MISSED"] * 3


# ── put in one call ──────────────────────────────────────────────────────────────────────────


def test_every_put_must_be_answered_as_it_should_be():
    answers = [Put(id=f"s-{n}", answer=PutAnswer.CREATED, version=1) for n in range(3)]

    schedules_put.check(answers, 3, PutAnswer.CREATED)
    with pytest.raises(BenchmarkError, match="2 were answered"):
        schedules_put.check(answers[:2], 3, PutAnswer.CREATED)
    with pytest.raises(BenchmarkError, match="3 not as already"):
        schedules_put.check(answers, 3, PutAnswer.ALREADY)


def test_a_stopwatch_counts_the_cpu_of_driver_and_server(tmp_path):
    store = SqliteStore(tmp_path)
    watch = schedules_put.Stopwatch(store)
    sum(range(200_000))

    found = watch.per(10)

    assert found["server_us"] == 0
    assert found["cpu_us"] > 0
    assert found["seconds"] > 0


# ── missed ───────────────────────────────────────────────────────────────────────────────────


async def test_a_year_of_minutes_is_planned_whole(tmp_path):
    found = await schedules_missed.missed(Bench(engine="sqlite", folder=tmp_path, scale=QUICK))

    assert found["schedules"] == QUICK.schedules_missed
    assert 0 < found["p50_ms"] <= found["p99_ms"]


def test_a_plan_that_leaves_some_of_the_year_is_an_error():
    empty = Firing(tenant="default", id="a", version=1, cursor_ms=0, next_cursor_ms=0, due_ms=None)
    skip = Skip(due_ms=2, first_ms=1, reason="missed")

    for firing in (
        empty,
        Firing(
            tenant="default",
            id="a",
            version=1,
            cursor_ms=0,
            next_cursor_ms=0,
            due_ms=1,
            skips=(skip,),
        ),
    ):
        with pytest.raises(BenchmarkError, match="0 runs"):
            schedules_missed.check(firing)


def test_a_year_of_minutes_may_take_ten_milliseconds():
    assert marks(schedules_missed.lines({"p50_ms": 1.0, "p99_ms": 10.0})) == ["", "ok"]
    assert marks(schedules_missed.lines({"p50_ms": 1.0, "p99_ms": 10.1})) == ["", "MISSED"]


def test_a_full_run_has_the_numbers_that_are_promised():
    assert (FULL.schedules_few, FULL.schedules_many) == (1_000, 1_000_000)
    assert FULL.schedules_due == 50_000
    assert FULL.schedules_put == 100_000
