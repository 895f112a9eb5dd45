"""How many children a worker should have."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.errors import InvalidOption, InvalidSettings
from lamplighter.model.ids import compose
from lamplighter.model.job import NewJob
from lamplighter.observability import events
from lamplighter.port.values import QueueSettings
from lamplighter.worker.autoscale import STEP_DOWN, STEP_UP, Autoscale, Scaler, parse
from lamplighter.worker.ledger import Ledger

SLOTS = 10


class Day:
    """A worker's day, second by second."""

    def __init__(self, lowest: int = 1, highest: int = 8, size: int | None = None) -> None:
        self.autoscale = Autoscale(lowest, highest)
        self.size = size or lowest
        self.sizes = [self.size]
        self.now = 100.0

    def pass_(self, seconds: float, *, busy: float, backlog: int | list[int]) -> list[int]:
        """Let time pass with so large a part of the slots in use; gives the sizes there were."""
        sizes = []
        for second in range(int(seconds)):
            waiting = backlog if isinstance(backlog, int) else backlog[second]
            used = round(busy * self.size * SLOTS)
            self.size = self.autoscale.decide(self.now, self.size, used, SLOTS, waiting)
            sizes.append(self.size)
            self.now += 1
        self.sizes += sizes
        return sizes


def test_full_children_and_a_backlog_that_stays_bring_one_more_every_two_seconds():
    day = Day()
    assert day.pass_(9, busy=1.0, backlog=5) == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert day.autoscale.reason == "5 due jobs wait"


def test_a_large_backlog_doubles_them_up_to_the_highest():
    day = Day(highest=7)
    assert day.pass_(9, busy=1.0, backlog=100_000) == [1, 1, 2, 2, 4, 4, 7, 7, 7]


def test_a_moment_of_pressure_changes_nothing():
    day = Day()
    for _ in range(10):
        day.pass_(STEP_UP, busy=1.0, backlog=5)
        day.pass_(1, busy=1.0, backlog=0)
    assert set(day.sizes) == {1}


def test_a_backlog_that_the_children_clear_in_time_needs_nobody_more():
    day = Day()
    day.pass_(6, busy=1.0, backlog=[60, 45, 30, 15, 5, 1])
    assert set(day.sizes) == {1}


def test_a_backlog_that_shrinks_too_slowly_does():
    day = Day()
    day.pass_(3, busy=1.0, backlog=[1000, 999, 998])
    assert day.size == 2


def test_without_a_backlog_or_with_free_slots_it_does_not_grow():
    day = Day()
    day.pass_(30, busy=1.0, backlog=0)
    day.pass_(30, busy=0.7, backlog=10_000)
    assert set(day.sizes) == {1}


def test_idle_children_go_one_after_the_other_down_to_the_lowest():
    day = Day(lowest=2, size=4)
    sizes = day.pass_(4 * STEP_DOWN, busy=0.0, backlog=0)
    assert sizes[int(STEP_DOWN) - 1] == 4
    assert sizes[int(STEP_DOWN)] == 3
    assert sizes[int(2 * STEP_DOWN)] == 2
    assert sizes[-1] == 2


def test_a_backlog_nobody_here_can_run_keeps_nobody():
    day = Day(size=2)
    day.pass_(STEP_DOWN + 1, busy=0.0, backlog=10_000)
    assert day.size == 1


def test_a_single_busy_moment_starts_the_wait_anew():
    day = Day(size=2)
    for _ in range(5):
        day.pass_(STEP_DOWN, busy=0.0, backlog=0)
        day.pass_(1, busy=0.5, backlog=0)
    assert set(day.sizes) == {2}


@pytest.mark.parametrize("load", range(0, 90, 3))
def test_a_steady_load_never_makes_it_go_up_and_down(load):
    """So many handlers want to run all the time; what finds no slot waits."""
    size, autoscale = 1, Autoscale(1, 8)
    sizes = []
    for second in range(600):
        busy = min(load, size * SLOTS)
        size = autoscale.decide(float(second), size, busy, SLOTS, load - busy)
        sizes.append(size)
    settled = sizes[100:]
    assert set(settled) == {settled[0]}
    assert load <= settled[0] * SLOTS or settled[0] == 8


def test_a_size_beyond_the_bounds_is_brought_inside():
    assert Autoscale(2, 4).decide(0.0, 1, 0, SLOTS, 0) == 2
    assert Autoscale(2, 4).decide(0.0, 9, 0, SLOTS, 0) == 4


# ── as users write it ────────────────────────────────────────────────────────────────────────


def test_a_range_is_read():
    assert parse("1..8") == (1, 8)
    assert parse(" 2 .. 2 ") == (2, 2)


@pytest.mark.parametrize(
    ("text", "cause", "hint"),
    [
        ("8..1", "ends below its beginning", "`1..8`"),
        ("0..3", "begins at 0", "`1..3`"),
        ("a..b", "not two whole numbers", "`1..8`"),
        ("4", "is one number", "--processes 4"),
        ("", "not two whole numbers", "`1..8`"),
        ("1..", "not two whole numbers", "`1..8`"),
        ("-1..4", "not two whole numbers", "`1..8`"),
        ("1...4", "not two whole numbers", "`1..8`"),
        ("0..0", "begins at 0", "`1..1`"),
    ],
)
def test_what_is_no_range_is_refused_with_the_remedy(text, cause, hint):
    with pytest.raises(InvalidOption) as refused:
        parse(text)
    assert cause in refused.value.cause
    assert f"`{text}`" in refused.value.cause
    assert hint in refused.value.hint


# ── at work ──────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass
class Worker:
    """A worker whose children are full."""

    size: int = 1
    id: str = "w-1"
    queues: tuple[str, ...] = ("mail", "default")
    draining: bool = False

    @property
    def children(self):
        full = Ledger()
        full.claimed("n", 0, [(str(number), 1, "work") for number in range(SLOTS)], 0.0)
        full.started([(number, 1e9) for number in range(SLOTS)], 0.0)
        return [SimpleNamespace(ledger=full, draining=False, alone=False) for _ in range(self.size)]

    def resize(self, count: int) -> None:
        self.size = count


class Clock(runtime.System):
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
async def engine(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/jobs.db")
    await engine.open()
    yield engine
    await engine.close()


async def submit(engine, queue: str, count: int = 3) -> None:
    await engine.jobs.submit(
        [
            NewJob(
                id=compose(runtime.now_ms(), 0, runtime.random_bits(70)),
                type="x",
                args=b"{}",
                queue=queue,
            )
            for _ in range(count)
        ]
    )


async def steps(engine, worker: Worker, count: int) -> list[dict]:
    told: list[dict] = []
    settings = Settings(slots=SLOTS, children_most=3)
    stop = events.listen(
        lambda name, fields: told.append(dict(fields)) if name == events.WORKER_SCALED else None
    )
    clock = Clock()
    try:
        with runtime.install(clock):
            scaler = Scaler(engine, settings, worker)
            for _ in range(count):
                clock.now += await scaler.step()
    finally:
        stop()
    return told


async def test_the_scaler_grows_a_worker_whose_queues_have_a_backlog(engine):
    await submit(engine, "mail")
    worker = Worker()

    told = await steps(engine, worker, 8)

    assert worker.size == 3
    assert told == [
        {"worker": "w-1", "size": 2, "before": 1, "reason": "3 due jobs wait"},
        {"worker": "w-1", "size": 3, "before": 2, "reason": "3 due jobs wait"},
    ]


async def test_queues_of_others_held_queues_and_later_jobs_are_no_backlog(engine):
    await submit(engine, "elsewhere")
    await submit(engine, "mail")
    await engine.settings.put_queue("mail", QueueSettings(held=True), by="test", reason="")
    assert await steps(engine, Worker(), 8) == []


async def test_a_worker_that_begins_with_more_than_the_most_is_refused(engine):
    with pytest.raises(InvalidSettings, match="begins with 4 children"):
        Scaler(engine, Settings(children_most=3), Worker(size=4))


async def test_a_worker_that_ends_is_left_alone(engine):
    await submit(engine, "mail")
    assert await steps(engine, Worker(draining=True), 8) == []
