"""Rescue and retention, step by step, and the loop that all services share."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from lamplighter import coordinator, runtime
from lamplighter.config import Settings
from lamplighter.coordinator import prune as pruning
from lamplighter.coordinator.prune import INTERVAL, Pruner
from lamplighter.coordinator.rescue import BATCH, MOST, Rescuer
from lamplighter.fleet import Fleet
from lamplighter.model import lifecycle
from lamplighter.model.errors import StoreBusy
from lamplighter.model.job import Delivery, JobState
from lamplighter.observability import events
from lamplighter.port.store import FINISHED_TOPIC, queue_topic
from lamplighter.port.values import Beat, Expired, Pruned, SettleAnswer
from lamplighter.service import Service
from tests.unit.worker.fakes import Clock, make_claim, make_engine

SETTINGS = Settings(lease=30.0)


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


@pytest.fixture
def engine():
    return make_engine()


@pytest.fixture
async def rescuer(engine, clock):
    return Rescuer(engine, SETTINGS)


def expired(count: int, **fields) -> list[Expired]:
    return [Expired(make_claim(n, **fields), 10) for n in range(count)]


async def test_expired_claims_are_abandoned_only_if_still_expired(engine, rescuer, told):
    engine.jobs.expired = expired(2)

    assert await rescuer.step() == 0.5

    (batch,) = engine.jobs.settled
    assert all(s.only_if_expired and s.outcome == "abandoned" for s in batch)
    assert (events.JOB_RESCUED, {"count": 2}) in told
    assert engine.wakeup.notified == [queue_topic("default")]


async def test_a_full_batch_is_followed_by_the_next_at_once(engine, rescuer):
    engine.jobs.expired = expired(BATCH)

    assert await rescuer.step() == 0.0


async def test_a_full_batch_that_cannot_be_moved_does_not_spin(engine, rescuer):
    engine.jobs.expired = expired(BATCH)
    engine.jobs.answers = {e.claim.job.id: SettleAnswer.RENEWED for e in engine.jobs.expired}

    assert await rescuer.step() == 0.5


async def test_a_locked_job_is_left_to_a_later_look_and_charged_nothing(engine, rescuer, clock):
    engine.jobs.expired = expired(3)
    engine.jobs.locked = {f"{0:026d}"}
    await rescuer.step()
    assert engine.jobs.outcomes() == {f"{n:026d}": "abandoned" for n in (1, 2)}

    engine.jobs.settled.clear()
    engine.jobs.locked.clear()
    engine.jobs.expired = expired(1)
    clock.seconds += 0.5
    await rescuer.step()

    ((settlement,),) = engine.jobs.settled
    assert (settlement.outcome, settlement.next.losses) == ("released", 0)
    assert settlement.only_if_expired


@pytest.mark.parametrize(("started", "state"), [(True, JobState.DEAD), (False, JobState.WAITING)])
async def test_a_locked_at_most_once_job_is_dead_only_if_it_was_started(
    engine, rescuer, clock, started, state
):
    (found,) = expired(1, delivery=Delivery.AT_MOST_ONCE)
    engine.jobs.expired = [replace(found, claim=replace(found.claim, started=started))]
    engine.jobs.locked = {f"{0:026d}"}
    await rescuer.step()
    engine.jobs.locked.clear()
    clock.seconds += 0.5

    await rescuer.step()

    assert list(engine.jobs.states().values()) == [state]


async def test_behind_claims_that_cannot_be_moved_others_are_rescued(engine, rescuer):
    stuck, behind = expired(2 * BATCH)[:BATCH], expired(2 * BATCH)[BATCH:]
    engine.jobs.expired = [*stuck, *behind]
    engine.jobs.answers = {e.claim.job.id: SettleAnswer.RENEWED for e in stuck}

    assert await rescuer.step() == 0.5
    assert await rescuer.step() == 0.0

    done = {s.id for batch in engine.jobs.settled for s in batch} - set(engine.jobs.answers)
    assert done == {e.claim.job.id for e in behind}
    assert max(len(batch) for batch in engine.jobs.settled) == BATCH


async def test_the_look_behind_has_an_end_and_begins_anew(engine, rescuer):
    asked = []
    rescue = engine.jobs.rescue

    async def noted(limit):
        asked.append(limit)
        return await rescue(limit)

    engine.jobs.rescue = noted
    engine.jobs.expired = expired(MOST + 1)
    engine.jobs.answers = {e.claim.job.id: SettleAnswer.RENEWED for e in engine.jobs.expired}
    for _ in range(7):
        await rescuer.step()
    engine.jobs.answers = {}
    await rescuer.step()
    await rescuer.step()

    assert asked == [500, 1000, 2000, 4000, 8000, MOST, MOST, MOST, 500]


async def test_the_pauses_after_a_rescue_are_scattered_by_chance(engine, rescuer, monkeypatch):
    dice = iter([0.25, 0.75])
    seen = []
    settle = lifecycle.settle

    def noted(*args, **options):
        seen.append(options["chance"])
        return settle(*args, **options)

    monkeypatch.setattr(runtime, "random", lambda: next(dice))
    monkeypatch.setattr(lifecycle, "settle", noted)
    engine.jobs.expired = expired(2)
    await rescuer.step()

    assert seen == [0.25, 0.75]


async def test_a_short_lease_is_looked_at_more_often(engine, clock):
    assert await Rescuer(engine, Settings(lease=1.0)).step() == 0.25


@pytest.fixture
def looks(engine, clock, monkeypatch):
    """Give at which steps, half a second from each other, a rescuer asks the store."""

    async def found(workers, *, steps: int, chance: float) -> list[int]:
        monkeypatch.setattr(clock, "random", lambda: chance)
        rescuer = Rescuer(engine, SETTINGS, workers)
        asked: list[int] = []
        rescue, begun = engine.jobs.rescue, clock.seconds

        async def noted(limit: int):
            asked.append(round((clock.seconds - begun) / 0.5))
            return await rescue(limit)

        engine.jobs.rescue = noted
        for _ in range(steps):
            assert await rescuer.step() == 0.5
            clock.seconds += 0.5
        return asked

    return found


@pytest.mark.parametrize("chance", [0.0, 0.999])
async def test_of_few_workers_each_looks_at_every_step(looks, chance):
    assert await looks(Fleet(60), steps=6, chance=chance) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("chance", "found"), [(0.0, [0, 5, 10, 15, 20]), (0.5, [0, 10, 20]), (0.99, [0, 15])]
)
async def test_of_many_workers_each_looks_less_often_at_times_of_its_own(looks, chance, found):
    assert await looks(Fleet(1_000), steps=25, chance=chance) == found


async def test_however_many_workers_there_are_each_looks_within_fifteen_seconds(looks):
    assert await looks(Fleet(1_000_000), steps=31, chance=0.999) == [0, 30]


async def test_who_is_told_that_others_are_gone_looks_at_once(looks):
    assert await looks(_Shrinking([2_000, 2_000, 2_000, 1, 1]), steps=5, chance=0.5) == [0, 3, 4]


class _Shrinking(Fleet):
    """Has another number of workers each time that one asks."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers = iter(numbers)
        self._quiet_until = self.quiet_at = None

    @property
    def workers(self) -> int:
        return next(self._numbers)


def _calm(workers: int) -> Fleet:
    fleet = Fleet()
    fleet.note(
        Beat(known=True, settings_version=1, workers=workers, overdue=False),
        5.0,
        runtime.boottime(),
    )
    return fleet


async def test_nobody_looks_while_very_many_others_keep_watch(looks):
    # What the last sign of life has told is believed for two and a half of them: 12.5 seconds.
    assert await looks(_calm(1_000), steps=30, chance=0.5) == [0, 25]


async def test_of_some_hundred_workers_each_looks_although_nothing_was_overdue(looks):
    assert await looks(_calm(400), steps=9, chance=0.5) == [0, 4, 8]


async def test_a_jump_of_the_stores_clock_is_noticed_after_a_long_calm(engine, clock, told):
    fleet = _calm(1_000)
    rescuer = Rescuer(engine, SETTINGS, fleet)
    await rescuer.step()
    for _ in range(60):
        clock.seconds += 5
        calm = Beat(known=True, settings_version=1, workers=1_000, overdue=False)
        fleet.note(calm, 5.0, runtime.boottime())
        await rescuer.step()
    # The store's clock is a minute ahead: leases that were renewed five seconds ago have ended.
    clock.seconds += 2
    engine.jobs.expired = [Expired(make_claim(1), 35_000)]
    fleet.note(Beat(known=True, settings_version=1, workers=1_000), 5.0, runtime.boottime())

    await rescuer.step()

    assert [name for name, _ in told] == [events.CLOCK_JUMPED]
    assert engine.jobs.settled == []


async def test_whoever_notices_something_overdue_looks_at_its_next_step(engine, clock):
    fleet = _calm(1_000)
    rescuer = Rescuer(engine, SETTINGS, fleet)
    await rescuer.step()
    clock.seconds += 6
    engine.jobs.expired = expired(1)
    await rescuer.step()
    assert engine.jobs.settled == []

    fleet.note(Beat(known=True, settings_version=1, workers=1_000), 5.0, runtime.boottime())
    await rescuer.step()

    assert len(engine.jobs.settled) == 1


async def test_among_many_workers_a_full_batch_is_followed_by_the_next_at_once(engine, clock):
    rescuer = Rescuer(engine, SETTINGS, Fleet(2_000))
    engine.jobs.expired = expired(BATCH)

    assert await rescuer.step() == 0.0
    assert await rescuer.step() == 0.0
    assert len(engine.jobs.settled) == 2


async def test_among_many_workers_a_look_that_failed_is_repeated(engine, clock):
    rescuer = Rescuer(engine, SETTINGS, Fleet(2_000))
    engine.jobs.failures = [StoreBusy("busy", hint="")]
    engine.jobs.expired = expired(1)
    with pytest.raises(StoreBusy):
        await rescuer.step()

    await rescuer.step()

    assert len(engine.jobs.settled) == 1


async def test_among_many_workers_a_jump_is_noticed_at_a_step_without_a_look(engine, clock, told):
    rescuer = Rescuer(engine, SETTINGS, Fleet(1_000))
    await rescuer.step()
    clock.seconds += 0.5
    await rescuer.step()
    assert told == []
    engine.jobs.expired = expired(1)
    clock.seconds += 31

    for _ in range(59):
        await rescuer.step()
        clock.seconds += 0.5
    assert [name for name, _ in told] == [events.CLOCK_JUMPED]
    assert engine.jobs.settled == []
    clock.seconds += 0.6
    await rescuer.step()
    assert len(engine.jobs.settled) == 1


async def test_among_many_workers_what_ended_since_the_last_look_is_not_taken_for_a_jump(
    engine, clock, told
):
    rescuer = Rescuer(engine, Settings(lease=2.0), Fleet(2_000))
    await rescuer.step()
    # It ended right after the first look, and the next is five seconds later.
    for step in range(1, 11):
        clock.seconds += 0.5
        engine.jobs.expired = [Expired(make_claim(1), 500 * step)]
        await rescuer.step()

    assert told == [(events.JOB_RESCUED, {"count": 1})]


async def test_a_job_out_of_budget_is_dead_and_waiters_are_told(engine, rescuer):
    engine.jobs.expired = expired(1, losses=9)

    await rescuer.step()

    assert engine.jobs.states() == {f"{0:026d}": JobState.DEAD}
    assert engine.wakeup.notified == [FINISHED_TOPIC]


async def test_what_the_rescue_gives_back_or_buries_is_logged(engine, rescuer, caplog):
    engine.jobs.expired = [*expired(1), Expired(make_claim(1, losses=9), 10)]

    await rescuer.step()

    back, dead = [(one.levelname, one.getMessage()) for one in caplog.records]
    assert back[0] == "WARNING"
    assert f"{0:026d}" in back[1]
    assert "abandoned, runs again in" in back[1]
    assert dead[0] == "ERROR"
    assert f"{1:026d}" in dead[1]
    assert "is dead" in dead[1]


async def test_what_the_rescue_does_is_not_logged_unless_wanted(engine, clock, caplog):
    engine.jobs.expired = expired(1)

    await Rescuer(engine, replace(SETTINGS, log_failures=0)).step()

    assert len(engine.jobs.settled) == 1
    assert caplog.records == []


async def test_one_broken_row_does_not_hide_the_others(engine, rescuer, told):
    engine.jobs.expired = [Expired(SimpleNamespace(job=make_claim(9).job), 1), *expired(2)]

    await rescuer.step()

    assert sorted(engine.jobs.outcomes()) == [f"{0:026d}", f"{1:026d}"]
    assert [fields["job_id"] for name, fields in told if name == events.SERVICE_ERROR]


async def test_one_row_that_cannot_be_written_does_not_hide_the_others(engine, rescuer):
    engine.jobs.expired = expired(3)
    passed = engine.jobs._pass
    calls = iter([None, RuntimeError("all"), RuntimeError("one"), None, None])

    async def fail_sometimes():
        await passed()
        if error := next(calls):
            raise error

    engine.jobs._pass = fail_sometimes
    await rescuer.step()

    assert sorted(engine.jobs.outcomes()) == [f"{1:026d}", f"{2:026d}"]


async def test_a_store_that_is_away_is_the_services_matter(engine, rescuer):
    engine.jobs.failures = [StoreBusy("busy", hint="")]

    with pytest.raises(StoreBusy):
        await rescuer.step()


async def test_after_a_jump_of_the_clock_rescue_waits_one_lease(engine, clock, rescuer, told):
    await rescuer.step()
    engine.jobs.expired = expired(1)
    clock.wall += 3600

    assert await rescuer.step() == 0.5
    assert engine.jobs.settled == []
    assert told[-1][0] == events.CLOCK_JUMPED

    for _ in range(29):
        clock.seconds += 1
        await rescuer.step()
    assert engine.jobs.settled == []
    clock.seconds += 1.1
    await rescuer.step()
    assert engine.jobs.outcomes() == {f"{0:026d}": "abandoned"}


async def test_after_a_standstill_shorter_than_a_lease_those_who_slept_too_renew_first(
    engine, clock, rescuer
):
    await rescuer.step()
    engine.jobs.expired = expired(1)
    clock.seconds += 20

    for _ in range(10):
        await rescuer.step()
        clock.seconds += 0.99
    assert engine.jobs.settled == []
    clock.seconds += 0.2
    await rescuer.step()
    assert engine.jobs.outcomes() == {f"{0:026d}": "abandoned"}


async def test_who_is_stopped_while_asking_lets_others_renew_first(engine, clock, rescuer):
    await rescuer.step()
    clock.seconds += 0.5
    engine.jobs.expired = expired(1)
    rescue = engine.jobs.rescue

    async def late(limit: int):
        clock.seconds += 20
        return await rescue(limit)

    engine.jobs.rescue = late
    await rescuer.step()
    assert engine.jobs.settled == []


async def test_where_every_step_is_late_jobs_are_rescued_all_the_same(engine, clock, rescuer):
    await rescuer.step()
    engine.jobs.expired = expired(1)
    for _ in range(3):
        clock.seconds += 11
        await rescuer.step()

    assert engine.jobs.outcomes() == {f"{0:026d}": "abandoned"}


async def test_after_a_jump_of_the_stores_own_clock_rescue_waits_one_lease(
    engine, clock, rescuer, told
):
    await rescuer.step()
    clock.seconds += 0.5
    engine.jobs.expired = [Expired(make_claim(1), 60_000)]

    assert await rescuer.step() == 0.5
    assert engine.jobs.settled == []
    assert told[-1][0] == events.CLOCK_JUMPED

    clock.seconds += 30.1
    await rescuer.step()
    assert len(engine.jobs.settled) == 1


async def test_what_was_overdue_at_the_first_look_is_rescued_at_once(engine, rescuer):
    engine.jobs.expired = [Expired(make_claim(1), 3_600_000)]

    await rescuer.step()

    assert len(engine.jobs.settled) == 1


async def test_what_cannot_be_moved_is_not_taken_for_a_jump(engine, clock, rescuer, told):
    stuck = make_claim(1)
    for n in range(200):
        engine.jobs.expired = [Expired(stuck, 1000 * n)]
        await rescuer.step()
        clock.seconds += 1

    assert events.CLOCK_JUMPED not in [name for name, _ in told]


async def test_after_a_store_that_stood_still_rescue_waits_one_lease(engine, clock, rescuer, told):
    answer = engine.jobs.rescue

    async def slow(limit: int):
        clock.seconds += 40
        return await answer(limit)

    engine.jobs.expired = expired(1)
    engine.jobs.rescue = slow
    await rescuer.step()
    engine.jobs.rescue = answer

    assert engine.jobs.settled == []
    assert told[-1][0] == events.CLOCK_JUMPED


async def test_a_clock_set_back_does_not_stop_rescue(engine, clock, rescuer):
    await rescuer.step()
    engine.jobs.expired = expired(1)
    clock.wall -= 3600

    await rescuer.step()

    assert len(engine.jobs.settled) == 1


# ── retention ────────────────────────────────────────────────────────────────────────────────


class FakePrune:
    def __init__(self, engine, *, leads: bool = True, answers=()) -> None:
        self.asked: list = []
        self._answers = list(answers)
        self._leads = leads
        engine.membership = SimpleNamespace(lead=self.lead)
        engine.jobs.prune = self.prune
        engine.access = SimpleNamespace(prune_access=self.prune_access)
        self.noted: list[int] = []
        """How many audit entries each step finds."""

    async def prune_access(self, keep_ms, limit) -> int:
        self.asked_access = (keep_ms, limit)
        return self.noted.pop(0) if self.noted else 0

    async def lead(self, role, holder, term_ms) -> bool:
        return self._leads

    async def prune(self, retention, limit) -> Pruned:
        self.asked.append((retention, limit))
        return self._answers.pop(0)


async def test_retention_goes_on_while_there_is_more(engine, clock, told):
    prune = FakePrune(engine, answers=[Pruned(jobs=500, more=True), Pruned()])
    pruner = Pruner(engine, Settings(keep_finished=3600.0))

    assert await pruner.step() == 0.0
    assert await pruner.step() == INTERVAL
    assert prune.asked[0][0].finished_ms == 3_600_000
    assert [name for name, _ in told] == [events.PRUNED]


async def test_retention_of_the_audit_log_goes_on_while_there_is_more(engine, clock, told):
    prune = FakePrune(engine, answers=[Pruned(), Pruned(), Pruned()])
    prune.noted = [pruning.BATCH, 7]
    pruner = Pruner(engine, Settings(keep_audit=7200.0))

    assert [await pruner.step() for _ in range(3)] == [0.0, INTERVAL, INTERVAL]
    assert prune.asked_access == (7_200_000, pruning.BATCH)
    assert [fields["others"] for _, fields in told] == [pruning.BATCH, 7]


async def test_only_who_leads_prunes(engine, clock):
    prune = FakePrune(engine, leads=False)

    assert await Pruner(engine, SETTINGS).step() == INTERVAL
    assert prune.asked == []


async def test_the_coordinator_rescues_fires_follows_the_zones_prunes_and_watches_versions(engine):
    names = [service.name for service in coordinator.services(engine, SETTINGS)]

    assert names == ["rescue", "fire", "zones", "prune", "versions"]


# ── patience ─────────────────────────────────────────────────────────────────────────────────


class Stuck(Service):
    """A service whose first steps never come to their end."""

    name = "stuck"
    patience = 0.02

    def __init__(self, stuck: int) -> None:
        super().__init__()
        self.begun = 0
        self.given_up = 0
        self.free = asyncio.Event()
        self.done = asyncio.Event()
        self._stuck = stuck

    async def step(self) -> float:
        self.begun += 1
        if self.begun <= self._stuck:
            try:
                await self.free.wait()
            finally:
                self.given_up += 1
        self.done.set()
        return 3600.0


async def test_a_stuck_step_is_given_up_counted_and_begun_anew(told):
    service = Stuck(2)
    began = service.progress
    service.start()
    async with asyncio.timeout(20):
        await service.done.wait()
        await service.stop()

    assert (service.begun, service.given_up, service.restarts) == (3, 2, 2)
    assert service.progress > began
    stuck = [fields for name, fields in told if name == events.SERVICE_STUCK]
    assert stuck == [{"service": "stuck", "seconds": 0.02}] * 2


async def test_a_step_that_raises_a_timeout_of_its_own_is_not_stuck(told):
    class Late(Stuck):
        patience = 600.0

        async def step(self) -> float:
            if not self.begun:
                self.begun += 1
                raise TimeoutError
            return await super().step()

    service = Late(0)
    service.start()
    async with asyncio.timeout(20):
        await service.done.wait()
        await service.stop()

    assert service.restarts == 0
    assert events.SERVICE_STUCK not in [name for name, _ in told]


async def test_a_service_without_patience_may_wait_as_long_as_it_likes():
    class Waiting(Stuck):
        patience = None

    service = Waiting(1)
    service.start()
    async with asyncio.timeout(20):
        await asyncio.sleep(5 * Stuck.patience)
        service.free.set()
        await service.done.wait()
        await service.stop()

    assert (service.begun, service.restarts) == (1, 0)
