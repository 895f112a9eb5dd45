"""Schedules become jobs, step by step, on a real store whose clock the test moves."""

from datetime import UTC, datetime

import pytest

from lamplighter import App, runtime
from lamplighter.config import Settings
from lamplighter.coordinator import fire
from lamplighter.coordinator.fire import (
    BATCH,
    BATCHES,
    BEHIND_MS,
    EMBEDDED_LANES,
    LANES,
    LEASE_MS,
    LONGEST_PAUSE,
    PER_WORKER,
    Firer,
)
from lamplighter.coordinator.plan import MOST_RUNS
from lamplighter.coordinator.writing import RUNS
from lamplighter.fleet import Fleet
from lamplighter.model.job import Claim, ErrorInfo, Status
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Cancelled, Failed, Outcome, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.observability import events
from lamplighter.port.schedules import NewSchedule, RunState, ScheduleRecord
from lamplighter.port.store import CANCEL_TOPIC, Engine, queue_topic
from lamplighter.port.values import Beat, ClaimRequest
from lamplighter.testing.clock import Clock, installed

START = datetime(2030, 6, 1, 12, 0, 30, tzinfo=UTC)
EVERY_MINUTE = "* * * * *"
SETTINGS = Settings()
DONE = Succeeded(b"null")
BOOM = Failed(ErrorInfo(type="Boom", message="no", traceback="", fingerprint="f" * 16))


@pytest.fixture
def clock():
    with installed(START) as clock:
        yield clock


@pytest.fixture
async def app(clock, tmp_path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.job(queue="money")
    async def bill(tenant: str = "acme") -> None: ...

    yield app
    await app.close()


@pytest.fixture
async def engine(app):
    return await app.engine()


@pytest.fixture
def firer(engine):
    return Firer(engine, SETTINGS)


class Scene:
    """A store with a coordinator, and what users and workers do to it."""

    def __init__(self, app: App, engine: Engine, firer: Firer, clock: Clock) -> None:
        self.app = app
        self.engine = engine
        self.firer = firer
        self.clock = clock

    async def put(self, *names: str, calendar: str = EVERY_MINUTE, **options) -> None:
        call = await self.app.call("bill", {})
        make = self.app.schedules.make
        await self.app.schedules.put_many(make(name, calendar, call, **options) for name in names)

    async def runs(self, name: str = "tick") -> list[tuple[int, RunState]]:
        """Give the runs of a schedule, the earliest due first: minute and state."""
        return [
            (datetime.fromtimestamp(run.due_ms / 1000, UTC).minute, run.state)
            for run in reversed(await self.app.schedules.runs(name))
        ]

    async def record(self) -> ScheduleRecord:
        return (await self.app.schedules.get("tick")).record

    async def minutes(self, number: int) -> None:
        """Let minutes pass, with a step of the coordinator after each."""
        for _ in range(number):
            self.clock.advance(minutes=1)
            await self.firer.step()

    async def claim(self) -> list[Claim]:
        wanted = ClaimRequest(
            nonce=runtime.nonce(),
            worker="w-1",
            queues=(("money", 10),),
            types=("bill",),
            limit=10,
            lease_ms=600_000,
        )
        return (await self.engine.jobs.claim(wanted)).claims

    async def end(self, claims: list[Claim], outcome: Outcome = DONE) -> None:
        """Settle claims as a worker would, without another attempt."""
        assert claims
        retry = Retry(max_attempts=1)
        await self.engine.jobs.settle([settle(claim, outcome, retry=retry) for claim in claims])


@pytest.fixture
def scene(app, engine, firer, clock):
    return Scene(app, engine, firer, clock)


@pytest.fixture
def one_by_one(monkeypatch):
    """Let a step fire no more than one batch."""
    monkeypatch.setattr(fire, "EMBEDDED_LANES", 1)
    monkeypatch.setattr(fire, "BATCHES", 1)


# ── when ─────────────────────────────────────────────────────────────────────────────────────


async def test_an_occurrence_is_fired_when_it_is_due_and_not_before(scene, firer, clock, told):
    await scene.put("tick")
    assert await firer.step() == LONGEST_PAUSE
    clock.advance(seconds=29.9)
    assert await firer.step() == pytest.approx(0.1)
    assert await scene.runs() == []
    clock.advance(seconds=0.1)

    assert await firer.step() == LONGEST_PAUSE

    assert await scene.runs() == [(1, RunState.STARTED)]
    assert firer.counts.fired == 1
    assert (events.SCHEDULES_FIRED, {"count": 1}) in told
    (claimed,) = await scene.claim()
    assert claimed.job.due_at_ms == clock.now_ms()
    await firer.step()
    assert await scene.runs() == [(1, RunState.STARTED)]


@pytest.fixture
def looks(engine, monkeypatch):
    """Give a list that grows with every look at the store."""
    seen = []
    due_schedules = engine.schedules.due_schedules

    async def noted(**asked):
        seen.append(asked)
        return await due_schedules(**asked)

    monkeypatch.setattr(engine.schedules, "due_schedules", noted)
    return seen


def calm(workers: int) -> Fleet:
    fleet = Fleet()
    fleet.note(
        Beat(known=True, settings_version=1, workers=workers, overdue=False),
        5.0,
        runtime.boottime(),
    )
    return fleet


async def test_while_very_many_others_keep_watch_only_a_known_occurrence_is_looked_for(
    scene, engine, clock, looks, monkeypatch
):
    passed = 0.0
    monkeypatch.setattr(runtime, "boottime", lambda: passed)
    await scene.put("tick")
    fleet = calm(2_000)
    firer = Firer(engine, SETTINGS, fleet)
    assert await firer.step() >= LONGEST_PAUSE
    for _ in range(29):
        passed += 1
        clock.advance(seconds=1)
        fleet.note(
            Beat(known=True, settings_version=1, workers=2_000, overdue=False),
            5.0,
            runtime.boottime(),
        )
        assert await firer.step() <= LONGEST_PAUSE
    assert len(looks) == 1

    passed += 1
    clock.advance(seconds=1)
    await firer.step()

    assert len(looks) == 2
    assert await scene.runs() == [(1, RunState.STARTED)]


async def test_whoever_notices_that_something_is_due_looks_at_its_next_step(
    scene, engine, clock, looks
):
    fleet = calm(2_000)
    firer = Firer(engine, SETTINGS, fleet)
    await firer.step()
    await scene.put("tick")
    clock.advance(seconds=30)
    fleet.note(Beat(known=True, settings_version=1, workers=2_000), 5.0, runtime.boottime())

    await firer.step()

    assert await scene.runs() == [(1, RunState.STARTED)]


async def test_workers_of_the_queue_are_woken(scene, firer, clock, engine, monkeypatch):
    woken = []

    async def notify(topic, jobs=None):
        woken.append((topic, dict(jobs)))

    await scene.put("a", "b")
    monkeypatch.setattr(engine.wakeup, "notify", notify)
    clock.advance(seconds=30)
    await firer.step()
    assert woken == [(queue_topic("money"), {"bill": 2})]


async def test_workers_hear_of_the_runs_that_a_schedule_cancels(
    scene, firer, clock, engine, monkeypatch
):
    woken = []

    async def notify(topic, jobs=None):
        woken.append(topic)

    await scene.put("a", overlap="cancel_running")
    monkeypatch.setattr(engine.wakeup, "notify", notify)
    clock.advance(seconds=30)
    await firer.step()
    assert woken == [queue_topic("money"), CANCEL_TOPIC]


async def test_without_schedules_the_store_is_looked_at_once_a_second(firer):
    assert await firer.step() == LONGEST_PAUSE
    assert firer.counts.fired == 0


async def test_of_many_nodes_each_comes_at_a_time_of_its_own(scene, engine, monkeypatch):
    await scene.put("tick")
    monkeypatch.setattr(runtime, "random", lambda: 0.5)
    assert await Firer(engine, SETTINGS, Fleet(400)).step() == 400 * PER_WORKER
    assert await Firer(engine, SETTINGS, Fleet(4)).step() == LONGEST_PAUSE


@pytest.mark.usefixtures("one_by_one")
async def test_more_than_a_batch_is_fired_batch_by_batch_without_a_pause(scene, firer, clock, app):
    number = 3 * BATCH + 50
    await scene.put(*(f"s-{n:04}" for n in range(number)))
    clock.advance(seconds=30)

    pauses, fired = [], []
    for _ in range(3):
        pauses.append(await firer.step())
        fired.append(firer.counts.fired)

    assert fired == [2 * BATCH, 3 * BATCH, number]
    assert max(pauses[:2]) < LONGEST_PAUSE
    assert pauses[2] == LONGEST_PAUSE
    assert {one.record.fired async for one in app.schedules.list()} == {1}


@pytest.mark.parametrize("lanes", [EMBEDDED_LANES, LANES])
async def test_a_step_fires_several_batches(scene, firer, clock, looks, lanes):
    assert firer._lanes == EMBEDDED_LANES
    firer._lanes = lanes
    number = (1 + lanes * BATCHES) * BATCH
    await scene.put(*(f"s-{n:05}" for n in range(number + 1)))
    clock.advance(seconds=30)

    assert await firer.step() < LONGEST_PAUSE
    assert (firer.counts.fired, len(looks)) == (number, 1 + lanes * BATCHES)
    assert firer.counts.resting
    assert await firer.step() == LONGEST_PAUSE
    assert (firer.counts.fired, firer.counts.stale) == (number + 1, 0)
    assert not firer.counts.resting


async def test_what_one_lane_has_left_to_do_is_not_hidden_by_another(firer, monkeypatch):
    # The first batch; then a lane that has more after its last one, and one that finds nothing.
    polls = iter([0, *[0] * BATCHES, 5_000])

    async def fire_one():
        return fire._Batch(0, next(polls), 0)

    monkeypatch.setattr(firer, "_fire_one", fire_one)

    assert await firer.step() < LONGEST_PAUSE
    assert firer.counts.resting


async def test_what_one_plan_cannot_hold_follows_in_the_same_step(scene, firer, clock):
    await scene.put("tick", catch_up="all", window=86_400, overlap="allow")
    clock.advance(minutes=MOST_RUNS + 50)

    assert await firer.step() == LONGEST_PAUSE

    assert firer.counts.fired == MOST_RUNS + 50


async def test_what_is_written_at_once_is_bounded_by_the_jobs_in_it(
    scene, firer, clock, engine, monkeypatch
):
    names = [f"s-{n}" for n in range(30)]
    await scene.put(*names, catch_up="all", window=86_400, overlap="allow")
    clock.advance(minutes=60)
    fire_all, sizes = engine.schedules.fire, []

    async def write(firings):
        sizes.append(sum(len(one.runs) for one in firings))
        return await fire_all(firings)

    monkeypatch.setattr(engine.schedules, "fire", write)
    await firer.step()

    assert (sum(sizes), firer.counts.fired) == (30 * 60, 30 * 60)
    assert max(sizes) <= RUNS < 30 * 60


async def test_a_plan_that_cannot_be_written_stops_no_others(scene, engine, told, monkeypatch):
    firer = scene.firer
    await scene.put("bad", "good")
    scene.clock.advance(seconds=30)
    fire_all = engine.schedules.fire

    async def refuse(firings):
        if any(one.id == "bad" for one in firings):
            raise OverflowError("no such number")
        return await fire_all(firings)

    monkeypatch.setattr(engine.schedules, "fire", refuse)
    await firer.step()

    assert len(await scene.runs("good")) == 1
    assert (firer.counts.fired, firer.counts.unreadable) == (1, 1)
    (complaint,) = [fields for name, fields in told if name == events.SERVICE_ERROR]
    assert (complaint["schedule"], complaint["expected"]) == ("bad", False)


# ── lag ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("one_by_one")
async def test_who_comes_late_says_so_until_it_has_caught_up(scene, firer, clock, told, engine):
    await scene.put(*(f"s-{n:04}" for n in range(2 * BATCH + 1)))
    clock.advance(seconds=30 + BEHIND_MS / 1000 + 2)

    await firer.step()
    assert firer.counts.behind
    assert firer.counts.lag_ms == BEHIND_MS + 2000
    await firer.step()
    assert firer.counts.behind
    await firer.step()

    assert not firer.counts.behind
    assert firer.counts.lag_ms == 0
    behind = [fields for name, fields in told if name == events.SCHEDULES_BEHIND]
    assert behind == [
        {"behind": True, "lag_ms": BEHIND_MS + 2000},
        {"behind": False, "lag_ms": 0},
    ]


@pytest.mark.parametrize(("newest_first", "second"), [(0, f"s-{2 * BATCH:04}"), (1, "young")])
@pytest.mark.usefixtures("one_by_one")
async def test_while_it_is_behind_the_newest_may_go_first(
    scene, engine, clock, newest_first, second
):
    firer = Firer(engine, Settings(fire_newest_first=newest_first))
    await scene.put(*(f"s-{n:04}" for n in range(3 * BATCH)))
    await scene.put("young", calendar="5 1 12 * * *")
    clock.advance(seconds=40)
    await firer.step()
    assert firer.counts.behind
    assert await scene.runs("young") == []

    await firer.step()

    assert len(await scene.runs(second)) == 1
    assert (await scene.runs("young") == []) == (second != "young")


# ── what stops nothing ───────────────────────────────────────────────────────────────────────


async def test_a_schedule_that_cannot_be_read_stops_no_others(scene, firer, clock, engine, told):
    bad = NewSchedule(
        id="bad", spec="{}", tenant="default", type="bill", due_ms=clock.now_ms() + 10_000
    )
    await engine.schedules.put_schedules([bad], by="test")
    await scene.put("tick")
    clock.advance(seconds=30)

    await firer.step()

    assert await scene.runs() == [(1, RunState.STARTED)]
    assert firer.counts.unreadable == 1
    (error,) = [fields for name, fields in told if name == events.SERVICE_ERROR]
    assert error["schedule"] == "bad"
    assert "put it again" in error["error"].hint
    await firer.step()
    assert firer.counts.unreadable == 1, "it is looked at again at once"
    clock.advance(seconds=LEASE_MS / 1000)
    await firer.step()
    assert firer.counts.unreadable == 2


async def test_of_two_plans_for_one_occurrence_the_second_is_stale_and_counted(
    scene, engine, clock, monkeypatch
):
    await scene.put("tick")
    clock.advance(seconds=30)
    first, second = Firer(engine, SETTINGS), Firer(engine, SETTINGS)
    due = await engine.schedules.due_schedules(limit=10, lease_ms=LEASE_MS)

    async def handed_out(**_):
        return due

    monkeypatch.setattr(engine.schedules, "due_schedules", handed_out)
    await first.step()
    await second.step()

    assert (first.counts.fired, first.counts.stale) == (1, 0)
    assert (second.counts.fired, second.counts.stale) == (0, 1)
    assert await scene.runs() == [(1, RunState.STARTED)]


async def test_what_a_dead_node_had_in_hand_is_fired_by_another_when_its_lease_ends(
    scene, engine, firer, clock
):
    await scene.put("tick")
    clock.advance(seconds=30)
    await engine.schedules.due_schedules(limit=10, lease_ms=LEASE_MS)
    await firer.step()
    assert await scene.runs() == []
    clock.advance(seconds=LEASE_MS / 1000)
    await firer.step()
    assert await scene.runs() == [(1, RunState.STARTED)]


async def test_after_an_outage_the_latest_is_made_up_for_and_the_rest_is_counted(
    scene, firer, clock
):
    await scene.put("tick")
    clock.advance(minutes=10)
    await firer.step()
    assert await scene.runs() == [(9, RunState.SKIPPED), (10, RunState.STARTED)]
    assert firer.counts.skipped == {"missed": 9}


# ── overlap and failures, to their end ───────────────────────────────────────────────────────


async def test_an_overlap_that_is_skipped_is_counted_with_its_reason(scene, firer, clock):
    await scene.put("tick")
    await scene.minutes(3)
    assert [state for _, state in await scene.runs()] == ["started", "skipped", "skipped"]
    assert firer.counts.skipped == {"overlap": 2}


async def test_one_is_queued_and_runs_as_soon_as_the_run_before_has_ended(
    scene, firer, clock, engine
):
    await scene.put("tick", overlap="queue_one")
    await scene.minutes(1)
    running = await scene.claim()
    await scene.minutes(2)
    assert await scene.runs() == [(1, "started"), (2, "queued"), (3, "skipped")]
    assert (firer.counts.queued, firer.counts.fired) == (1, 1)
    assert await scene.claim() == []

    await scene.end(running)
    await firer.step()

    assert await scene.runs() == [(1, "succeeded"), (2, "started"), (3, "skipped")]
    assert firer.counts.fired == 2
    (second,) = await scene.claim()
    await scene.end([second])
    assert (await scene.runs())[1] == (2, "succeeded")


async def test_the_running_one_is_cancelled_and_the_newest_takes_its_place(
    scene, firer, clock, engine
):
    await scene.put("tick", overlap="cancel_running")
    await scene.minutes(1)
    (running,) = await scene.claim()
    await scene.minutes(2)

    assert await scene.runs() == [(1, "started"), (2, "skipped"), (3, "queued")]
    record = await engine.inspector.job(running.job.id)
    assert record.status is Status.CANCELLING
    await scene.end([running], Cancelled())
    await firer.step()

    assert await scene.runs() == [(1, "cancelled"), (2, "skipped"), (3, "started")]
    assert len(await scene.claim()) == 1


async def test_a_schedule_is_held_after_so_many_failures_in_a_row(scene, app, firer, clock, told):
    await scene.put("tick", hold_after=2)
    for outcome in (BOOM, DONE, BOOM, BOOM):
        await scene.minutes(1)
        await scene.end(await scene.claim(), outcome)
    assert (await scene.record()).failures == 2

    await firer.step()
    await scene.minutes(2)

    record = await scene.record()
    assert record.hold.reason == "its last 2 runs have failed"
    assert [state for _, state in await scene.runs()] == ["dead", "succeeded", "dead", "dead"]
    held = [fields for name, fields in told if name == events.SCHEDULE_HELD]
    assert held == [
        {"tenant": "default", "schedule": "tick", "reason": "its last 2 runs have failed"}
    ]
    await app.schedules.unhold("tick")
    await firer.step()
    assert (await scene.runs())[-1] == (6, "started")
    assert (await scene.record()).failures == 0


async def test_after_its_number_of_runs_it_is_over(scene, app, firer, clock):
    await scene.put("tick", max_runs=2, overlap="allow")
    await scene.minutes(4)
    assert await scene.runs() == [(1, "started"), (2, "started")]
    assert (await app.schedules.get("tick")).next_run is None
