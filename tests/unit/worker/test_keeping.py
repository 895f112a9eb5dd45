"""Leases, silent children and dead ones, as the supervisor handles them."""

import asyncio
import os

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreBusy
from lamplighter.model.job import Delivery, JobState
from lamplighter.observability import events
from lamplighter.port.store import queue_topic
from lamplighter.worker import memory
from lamplighter.worker.burial import Burial, suspects
from lamplighter.worker.ending import KILL_AFTER
from lamplighter.worker.keeper import Keeper
from lamplighter.worker.link import (
    Cancel,
    Ended,
    Extended,
    Finished,
    Forsaken,
    Hello,
    Kept,
    Lost,
    Tick,
    Yours,
)
from lamplighter.worker.run import margin
from lamplighter.worker.watch import FORSAKEN, LOST_GRACE, START_DEADLINE, Watch
from tests.unit.worker.fakes import Clock, make_claim, make_engine, until
from tests.unit.worker.kept_child import SETTINGS, Child


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


@pytest.fixture
def engine():
    return make_engine()


@pytest.fixture
async def child(clock):
    return Child()


@pytest.fixture
async def keeper(engine, child):
    return Keeper(engine, SETTINGS, lambda: [child])


@pytest.fixture
async def burial(engine):
    return Burial(engine, SETTINGS)


@pytest.fixture
async def watch(child, burial):
    def retire(child: Child, why: str) -> None:
        child.draining = True
        child.why = why
        child.end_by = runtime.boottime() + SETTINGS.grace

    return Watch(SETTINGS, burial, lambda: [child], retire)


# ── keeper ───────────────────────────────────────────────────────────────────────────────────


async def test_a_lease_that_another_client_has_locked_is_asked_about_until_it_is_free(
    clock, engine, child, keeper
):
    child.claims(0, 1)
    engine.jobs.locked = {child.ledger.entries[0].id}
    clock.seconds += 12
    await keeper.step()
    assert [entry.kept_at for entry in child.ledger.entries.values()] == [1000.0, 1012.0]
    assert child.heard(Lost) == []

    clock.seconds += 2
    engine.jobs.locked = set()
    await keeper.step()
    assert child.ledger.entries[0].kept_at == 1014.0


async def test_a_lease_that_stays_locked_is_given_up_before_the_child_doubts_the_others(
    clock, engine, child, keeper, watch
):
    child.claims(0, 1)
    engine.jobs.locked = {child.ledger.entries[0].id}
    believed = SETTINGS.lease - margin(SETTINGS.lease)
    while 0 in child.ledger.entries:
        clock.seconds += 0.25
        child.heard_at = clock.seconds
        # The child may look before its supervisor does.
        assert child.ledger.kept_since(0.0) + believed > clock.seconds
        if clock.seconds % 2 == 0:
            await keeper.step()
        await watch.step()
    assert child.heard(Lost) == [[0]]
    assert 1 in child.ledger.entries


async def test_leases_are_renewed_together_after_a_third(clock, engine, child, keeper):
    child.claims(0, 1)
    await keeper.step()
    clock.seconds += 10
    await keeper.step()

    assert engine.jobs.renewals == [[f"{0:026d}", f"{1:026d}"]]
    assert {entry.kept_at for entry in child.ledger.entries.values()} == {1010.0}


async def test_a_cancel_is_passed_on_once(clock, engine, child, keeper):
    child.claims(0)
    child.starts(0)
    engine.jobs.cancelled = {f"{0:026d}"}
    for _ in range(3):
        clock.seconds += 2
        await keeper.step()

    assert child.heard(Cancel) == [[0]]


async def test_a_cancel_is_found_at_once_when_a_child_asks(clock, engine, child, keeper):
    child.claims(0, 1, 2)
    child.starts(0, 1)
    engine.jobs.cancelled = {f"{1:026d}", f"{2:026d}"}

    await keeper.look_for_cancels(child)
    await keeper.look_for_cancels(child)

    assert child.heard(Cancel) == [[1]]
    # What was told, and what does not run, is not asked about.
    assert engine.jobs.renewals == [[f"{0:026d}", f"{1:026d}"], [f"{0:026d}"]]


async def test_a_store_that_fails_while_a_child_asks_changes_nothing(clock, engine, child, keeper):
    child.claims(0)
    child.starts(0)
    engine.jobs.failures = [StoreBusy("busy", hint="wait")]

    await keeper.look_for_cancels(child)

    assert child.heard(Lost) == []
    assert list(child.ledger.entries) == [0]


async def test_a_lost_lease_is_taken_from_the_child(clock, engine, child, keeper):
    child.claims(0, 1)
    engine.jobs.held = {f"{1:026d}": False}
    clock.seconds += 10
    await keeper.step()

    assert child.heard(Lost) == [[1]]
    assert list(child.ledger.entries) == [0]


async def test_a_failed_round_is_unknown_and_soon_repeated(clock, engine, child, keeper):
    child.claims(0)
    engine.jobs.failures = [StoreBusy("busy", hint="")]
    clock.seconds += 10

    assert await keeper.step() <= 0.25
    assert child.ledger.entries[0].kept_at == 1000.0
    assert child.heard(Lost) == []

    await keeper.step()
    assert child.ledger.entries[0].kept_at == 1010.0


async def test_the_dead_are_not_kept(clock, engine, child, keeper):
    child.claims(0)
    child.dead = True
    clock.seconds += 20
    await keeper.step()

    assert engine.jobs.renewals == []


async def test_what_hangs_is_kept_only_while_its_neighbours_finish(clock, engine, child, keeper):
    child.claims(0)
    child.starts(0, hard_end=1001.0)
    clock.seconds += 20
    child.condemned = frozenset({0})
    await keeper.step()
    assert engine.jobs.renewals == []

    child.draining = True
    await keeper.step()
    assert engine.jobs.renewals == [[f"{0:026d}"]]


async def test_a_resync_confirms_what_the_store_extends(engine, child, keeper):
    child.claims(0, 1, 2)
    child.ledger.drop([2])
    engine.jobs.held = {f"{1:026d}": False}

    await keeper.confirm(child, [0, 1, 2])

    assert child.heard(Yours) == [[0]]
    assert child.heard(Lost) == [[1]]


async def test_a_child_hears_of_a_renewal_when_it_is_acknowledged(clock, engine, child, keeper):
    child.claims(0)
    child.claims(1, sent_at=1005.0)
    clock.seconds += 12
    engine.jobs.gate = asyncio.Event()
    renewing = asyncio.ensure_future(keeper.step())
    await asyncio.sleep(0)
    clock.seconds += 3
    assert child.line.of(Kept) == []

    engine.jobs.gate.set()
    await renewing

    assert [message.since for message in child.line.of(Kept)] == [1005.0]


@pytest.mark.parametrize("lease", [0.3, 1.5, 6.0, 12.0, 30.0, 600.0])
async def test_however_short_a_lease_is_it_is_asked_for_before_it_is_half_over(
    clock, engine, child, lease
):
    keeper = Keeper(engine, Settings(lease=lease), lambda: [child])
    pause, ages = await keeper.step(), list[float]()
    for number in range(100):
        sent_at = clock.seconds - pause * number / 100
        child.claims(number, sent_at=sent_at)
        while not engine.jobs.renewals:
            ages.append(clock.seconds - sent_at)
            clock.seconds += await keeper.step()
        child._hear(Finished([number]))
        engine.jobs.renewals.clear()

    assert max(ages) <= lease / 2 + 0.001


# ── watch ────────────────────────────────────────────────────────────────────────────────────


async def test_a_lease_that_could_not_be_renewed_is_given_up_before_its_end(clock, child, watch):
    child.claims(0)
    clock.seconds += 30 - margin(30) - 0.1
    child._hear(Tick(0))
    await watch.step()
    assert child.heard(Lost) == []

    clock.seconds += 0.2
    child._hear(Tick(0))
    await watch.step()
    assert child.heard(Lost) == [[0]]


async def test_a_child_with_nothing_but_a_handler_past_its_hard_end_is_killed(clock, child, watch):
    child.claims(0, 1)
    child.starts(0, hard_end=1001.0)
    clock.seconds += 0.9
    child._hear(Tick(1))
    await watch.step()
    assert not child.killed

    clock.seconds += 0.1
    await watch.step()
    assert child.killed
    assert child.condemned == {0}


async def test_beside_a_handler_past_its_hard_end_others_may_finish(clock, child, watch):
    child.claims(0, 1)
    child.starts(0, hard_end=1001.0)
    child.starts(1)
    clock.seconds += 1
    child._hear(Tick(2))
    await watch.step()
    assert child.draining
    assert not child.killed

    child._hear(Finished([1]))
    await watch.step()
    assert child.killed
    assert child.condemned == {0}


async def test_what_has_ended_beside_a_handler_past_its_hard_end_is_written_first(
    clock, child, watch
):
    child.claims(0, 1)
    child.starts(0, hard_end=1001.0)
    child.starts(1)
    child._hear(Ended([1]))
    clock.seconds += 1
    child._hear(Tick(1))
    await watch.step()
    assert child.draining
    assert not child.killed

    child._hear(Finished([1]))
    await watch.step()
    assert child.killed
    assert child.condemned == {0}


async def test_what_cannot_be_written_is_not_waited_for_beyond_the_grace(clock, child, watch):
    child.claims(0, 1)
    child.starts(0, hard_end=1001.0)
    child.starts(1)
    child._hear(Ended([1]))
    for seconds in (1, SETTINGS.grace + KILL_AFTER - 0.1):
        clock.seconds += seconds
        child._hear(Tick(1))
        await watch.step()
        assert not child.killed

    clock.seconds += 0.2
    child._hear(Tick(1))
    await watch.step()
    assert child.killed


async def test_a_child_that_does_not_end_after_its_grace_is_killed(clock, child, watch):
    child.claims(0, 1)
    child.starts(0, hard_end=1001.0)
    child.starts(1)
    for seconds in (1, SETTINGS.grace + KILL_AFTER - 0.1):
        clock.seconds += seconds
        child._hear(Tick(2))
        await watch.step()
        assert not child.killed

    clock.seconds += 0.2
    child._hear(Tick(2))
    await watch.step()
    assert child.killed


async def test_a_child_whose_loop_stands_still_is_killed_and_nobody_can_tell_for_whom(
    clock, child, watch
):
    child.claims(0, 1)
    child.starts(0, 1, hard_end=1001.0)
    clock.seconds += 1.1
    await watch.step()

    assert child.killed
    assert not child.condemned


async def test_a_handler_that_holds_up_the_loop_alone_is_out_of_time(clock, child, watch):
    child.claims(0, 1)
    child.starts(0, hard_end=1001.0)
    clock.seconds += 1.1
    await watch.step()

    assert child.killed
    assert child.condemned == {0}


async def test_a_handler_that_goes_on_without_its_claim_costs_its_process(clock, child, watch):
    child.claims(0, 1, 2)
    child.starts(0, 1)
    child.lose([0, 2])
    clock.seconds += LOST_GRACE
    child._hear(Tick(2))
    await watch.step()
    assert not child.killed

    clock.seconds += 0.1
    await watch.step()
    assert child.killed
    assert not child.condemned


async def test_a_handler_that_ends_after_its_claim_was_lost_costs_nothing(clock, child, watch):
    child.claims(0)
    child.starts(0)
    child.lose([0])
    child._hear(Forsaken([0]))
    clock.seconds += LOST_GRACE + 1
    child._hear(Tick(0))
    await watch.step()

    assert not child.killed
    assert len(child.ledger.forsaken) == 1


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.WAITING, JobState.RUNNING])
async def test_a_child_that_cannot_say_that_it_has_settled_a_job_is_not_killed_for_it(
    clock, engine, child, watch, state
):
    keeper = Keeper(engine, SETTINGS, lambda: [child])
    # A neighbour holds up its loop between the write and the word about it.
    child.claims(0, 1)
    child.starts(0, 1)
    settled = child.ledger.entries[0].id
    engine.jobs.held[settled] = False
    engine.inspector.states[settled] = state
    clock.seconds += 12
    await keeper.step()
    assert child.heard(Lost) == [[0]]

    for _ in range(2):
        clock.seconds += LOST_GRACE
        await keeper.step()
        await watch.step()

    assert bool(child.killed) is (state is not JobState.SUCCEEDED)


async def test_what_was_lost_and_not_taken_up_comes_back_uncharged(engine, child, burial):
    child.claims(0, 1)
    child.starts(0, 1)
    child.lose([0])
    child.sacrificed = True
    engine.jobs.claims = [make_claim(n) for n in range(2)]

    await burial.bury(child)

    assert engine.jobs.outcomes() == {f"{0:026d}": "abandoned", f"{1:026d}": "released"}
    assert all(s.next.losses == s.next.attempt == 0 for s in engine.jobs.settled[0])


async def test_a_handler_that_came_further_has_another_hard_end(clock, child, watch):
    child.claims(0)
    child.starts(0, hard_end=1001.0)
    child._hear(Extended([(0, 1005.0), (7, 1.0)]))
    clock.seconds += 2
    child._hear(Tick(1))
    await watch.step()
    assert not child.killed

    clock.seconds += 3
    await watch.step()
    assert child.killed


async def test_a_child_beyond_its_memory_is_replaced(clock, child, burial, monkeypatch):
    retired = []
    settings = Settings(child_mb=100)
    watch = Watch(settings, burial, lambda: [child], lambda child, why: retired.append(why))
    used = {0: 100 << 20}
    monkeypatch.setattr("lamplighter.worker.memory.of", used.get)
    await watch.step()
    assert retired == []

    used[0] += 1 << 20
    await watch.step()
    assert retired == []
    clock.seconds += 2.1
    child._hear(Tick(0))
    await watch.step()
    assert retired == ["it uses 101 MB of memory"]


def test_memory_is_told_of_processes_that_live():
    assert memory.of(os.getpid()) > 1 << 20
    assert memory.of(2**22 + 1) is None


async def test_a_silent_childs_unstarted_claims_are_given_back(clock, engine, child, watch):
    told = []
    stop = events.listen(lambda name, fields: told.append(name))
    child.claims(0, 1)
    child.starts(0)
    # The third was claimed, but the child stood still before it could report it.
    engine.jobs.claims = [make_claim(n) for n in range(3)]
    clock.seconds += 0.9
    await watch.step()
    assert child.heard(Lost) == []

    clock.seconds += 0.2
    await watch.step()
    await until(lambda: engine.jobs.settled)
    await watch.step()
    stop()

    assert child.heard(Lost) == [[1]]
    assert engine.jobs.outcomes() == {f"{1:026d}": "released", f"{2:026d}": "released"}
    assert told.count(events.LOOP_SILENT) == 1
    assert list(child.ledger.entries) == [0]


async def test_what_is_being_given_back_is_not_confirmed(clock, engine, child, keeper, burial):
    child.claims(0)
    engine.jobs.claims = [make_claim(0), make_claim(1)]
    engine.jobs.gate = asyncio.Event()
    giving = asyncio.ensure_future(burial.give_back(child))
    await asyncio.sleep(0)

    child.claims(1)
    confirming = asyncio.ensure_future(keeper.confirm(child, [0, 1]))
    await asyncio.sleep(0)
    assert engine.jobs.renewals == []

    engine.jobs.gate.set()
    await giving
    await confirming
    assert engine.jobs.outcomes() == {f"{0:026d}": "released"}
    assert child.heard(Yours) == [[1]]


# ── burial ───────────────────────────────────────────────────────────────────────────────────


async def test_a_dead_childs_started_jobs_are_abandoned_and_the_others_released(
    engine, child, burial
):
    child.claims(0, 1)
    child.starts(0)
    engine.jobs.claims = [make_claim(n) for n in range(3)]

    counts = await burial.bury(child)

    assert (counts.started, counts.unstarted) == (1, 2)
    assert engine.jobs.outcomes() == {
        f"{0:026d}": "abandoned",
        f"{1:026d}": "released",
        f"{2:026d}": "released",
    }
    assert queue_topic("default") in engine.wakeup.notified


async def test_for_a_hard_end_only_the_offender_pays(engine, child, burial):
    child.claims(0, 1, 2)
    child.starts(0, hard_end=1000.0 + 3 + SETTINGS.hard_after)
    child.starts(1)
    child.condemned = frozenset({0})
    engine.jobs.claims = [make_claim(n) for n in range(3)]

    await burial.bury(child)

    offender = engine.jobs.settled[0][0]
    assert offender.outcome == "timed_out"
    assert "3 s" in offender.next.error.message
    assert offender.next.attempt == 1
    assert [s.outcome for s in engine.jobs.settled[0][1:]] == ["released", "released"]


async def test_the_timeout_of_a_type_with_a_hard_end_of_its_own_is_told(engine, child, burial):
    child.hard_after = {"type-0": 60.0}
    child.claims(0)
    child.starts(0, hard_end=1000.0 + 3 + 60)
    child.condemned = frozenset({0})
    engine.jobs.claims = [make_claim(0)]

    await burial.bury(child)

    assert "timeout of 3 s" in engine.jobs.settled[0][0].next.error.message


async def test_a_timeout_is_told_as_it_was_though_its_start_was_heard_late(
    clock, engine, child, burial
):
    child.claims(0)
    clock.seconds += 0.4
    child.starts(0, hard_end=1000.0 + 3 + SETTINGS.hard_after, at=1000.0)
    child.condemned = frozenset({0})
    engine.jobs.claims = [make_claim(0)]

    await burial.bury(child)

    assert "timeout of 3 s" in engine.jobs.settled[0][0].next.error.message


async def test_who_was_at_work_in_a_dead_child_is_known_without_the_store(child):
    child.claims(0, 1, 2, 3, 4)
    child.starts(0, 1, 2, 3)
    child._hear(Ended([1]))
    child.lose([2, 3])
    child._hear(Forsaken([3]))

    assert suspects(child) == {"type-0", "type-1", "type-2"}


@pytest.mark.parametrize("why", ["draining", "sacrificed"])
async def test_nobody_is_suspected_of_an_end_that_was_wanted(child, why):
    child.claims(0)
    child.starts(0)
    setattr(child, why, True)

    assert suspects(child) == frozenset()


async def test_a_drained_childs_rest_is_released(engine, child, burial):
    child.claims(0)
    child.starts(0)
    child.draining = True
    engine.jobs.claims = [make_claim(0)]

    await burial.bury(child)

    assert engine.jobs.outcomes() == {f"{0:026d}": "released"}


async def test_a_job_to_be_run_at_most_once_is_dead_with_its_child(engine, child, burial):
    child.claims(0, 1)
    child.starts(0)
    engine.jobs.claims = [make_claim(n, delivery=Delivery.AT_MOST_ONCE) for n in range(2)]

    await burial.bury(child)

    assert engine.jobs.states() == {
        f"{0:026d}": JobState.DEAD,
        f"{1:026d}": JobState.WAITING,
    }


async def test_a_started_job_whose_lease_was_given_up_is_not_taken_for_unstarted(
    clock, engine, child, burial, watch
):
    child.claims(0, 1)
    child.starts(0)
    clock.seconds += 29
    child._hear(Tick(0))
    await watch.step()
    assert child.heard(Lost) == [[0, 1]]
    engine.jobs.claims = [make_claim(n) for n in range(2)]

    await burial.bury(child)

    assert engine.jobs.outcomes() == {f"{0:026d}": "abandoned", f"{1:026d}": "released"}


async def test_a_burial_waits_for_the_store(engine, child, burial):
    engine.jobs.failures = [StoreBusy("busy", hint=""), StoreBusy("busy", hint="")]
    engine.jobs.claims = [make_claim(0)]

    await burial.bury(child)

    assert engine.jobs.outcomes() == {f"{0:026d}": "released"}


async def test_a_supervisor_that_was_stopped_itself_does_not_take_children_for_silent(
    clock, engine, child, watch
):
    child.claims(0)

    def stopped_after_reading() -> None:
        clock.seconds += 20

    child.line.read = stopped_after_reading
    await watch.step()
    await asyncio.sleep(0)

    assert child.heard(Lost) == []
    assert child.silent_since is None


async def test_a_start_that_arrives_while_the_store_is_asked_counts(engine, child, burial):
    engine.jobs.claims = [make_claim(0)]

    def arrives() -> None:
        child.claims(0)
        child.starts(0)

    child.line.read = arrives
    await burial.give_back(child)

    assert engine.jobs.outcomes() == {}


async def test_a_started_claim_the_child_gave_up_is_not_taken_for_unstarted(engine, child, burial):
    child.claims(0)
    child.starts(0)
    child._hear(Forsaken([0]))
    engine.jobs.claims = [make_claim(0, delivery=Delivery.AT_MOST_ONCE)]

    await burial.bury(child)

    assert engine.jobs.states() == {f"{0:026d}": JobState.DEAD}


async def test_a_child_hears_since_when_its_leases_are_kept(clock, child, watch):
    child.claims(0, sent_at=998.0)
    child.claims(1, sent_at=999.0)
    await watch.step()
    child._hear(Finished([0, 1]))
    await watch.step()

    assert [message.since for message in child.line.of(Kept)] == [998.0, 1000.0]


async def test_when_the_store_cannot_say_what_a_silent_child_holds_nothing_is_taken_from_it(
    engine, child, burial
):
    child.claims(0)
    engine.jobs.claims = [make_claim(0)]
    engine.jobs.failures = [StoreBusy("busy", hint="")]

    with pytest.raises(StoreBusy):
        await burial.give_back(child)
    assert list(child.ledger.entries) == [0]
    assert child.heard(Lost) == []

    await burial.give_back(child)
    assert child.heard(Lost) == [[0]]
    assert engine.jobs.outcomes() == {f"{0:026d}": "released"}


async def test_what_starts_while_the_store_is_asked_is_not_taken_away(engine, child, burial):
    child.claims(0, 1)
    engine.jobs.claims = [make_claim(0), make_claim(1)]
    child.line.read = lambda: child.starts(0)

    await burial.give_back(child)

    assert child.heard(Lost) == [[1]]
    assert engine.jobs.outcomes() == {f"{1:026d}": "released"}


async def test_claims_given_up_are_forgotten_when_others_have_settled_them(
    clock, engine, child, watch
):
    numbers = range(FORSAKEN)
    child.claims(*numbers)
    child.starts(*numbers)
    child._hear(Forsaken(list(numbers)))
    assert len(child.ledger.forsaken) == FORSAKEN
    engine.jobs.claims = [make_claim(7)]

    await watch.step()
    await until(lambda: len(child.ledger.forsaken) == 1)

    assert child.ledger.forsaken[0].number == 7


async def test_a_child_that_does_not_start_in_time_is_killed(clock, child, watch):
    child.ready = False
    clock.seconds += START_DEADLINE
    await watch.step()
    assert not child.killed

    clock.seconds += 0.1
    await watch.step()

    assert child.killed
    assert "did not start within 60 s" in child.broken.cause


async def test_a_hello_that_has_arrived_is_in_time(clock, child, watch):
    child.ready = False
    clock.seconds += START_DEADLINE + 1
    child.line.read = lambda: child._hear(Hello(1, ("default",), (), {}))

    await watch.step()

    assert child.ready
    assert not child.killed
