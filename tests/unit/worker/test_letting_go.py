"""What becomes of claims that a living child must not go on with."""

from collections.abc import Iterator

import pytest

from lamplighter import runtime
from lamplighter.model.errors import StoreBusy
from lamplighter.model.job import Delivery, JobState
from lamplighter.port.store import queue_topic
from lamplighter.worker.burial import Burial
from lamplighter.worker.keeper import Keeper
from lamplighter.worker.link import Ended, Finished, Forsaken, Lost, Tick, Unkept
from lamplighter.worker.process import LET_GO
from lamplighter.worker.watch import LOST_GRACE, Watch
from tests.unit.worker.fakes import Clock, make_claim, make_engine
from tests.unit.worker.kept_child import SETTINGS, Child


class Bench:
    """A child, a store, and those who keep its claims."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.engine = make_engine()
        self.jobs = self.engine.jobs
        self.child = Child()
        self.keeper = Keeper(self.engine, SETTINGS, lambda: [self.child])
        self.burial = Burial(self.engine, SETTINGS)
        self.watch = Watch(SETTINGS, self.burial, lambda: [self.child], lambda *_: None)

    async def take(self, *numbers: int, **fields) -> None:
        """Let leases grow too old while the child goes on."""
        self.jobs.claims = [make_claim(number, **fields) for number in numbers]
        self.clock.seconds += 29
        self.child._hear(Tick(0))
        await self.watch.step()
        assert self.child.heard(Lost) == [list(numbers)]


@pytest.fixture
async def bench() -> Iterator[Bench]:
    clock = Clock()
    with runtime.install(clock):
        yield Bench(clock)


@pytest.mark.parametrize("started", [True, False])
async def test_what_is_taken_from_a_living_child_is_kept_until_it_has_let_go_and_charges_nobody(
    bench, started
):
    bench.child.claims(0)
    if started:
        bench.child.starts(0)
    await bench.take(0)

    await bench.keeper.step()
    bench.clock.seconds += 4
    await bench.keeper.step()
    assert bench.jobs.renewals[0] == [f"{0:026d}"]

    bench.child._hear(Forsaken([0]))
    await bench.burial.release(bench.child)
    (settlement,) = bench.jobs.settled[0]
    assert settlement.outcome == "released"
    assert settlement.next.state is JobState.WAITING
    assert settlement.next.losses == 0
    assert not settlement.next.suspect
    assert queue_topic("default") in bench.engine.wakeup.notified

    bench.jobs.renewals.clear()
    bench.clock.seconds += 20
    await bench.keeper.step()
    assert bench.jobs.renewals == []
    assert bench.child.ledger.forsaken == []


async def test_nothing_is_given_back_before_the_child_has_let_go(bench):
    bench.child.claims(0, 1)
    bench.child.starts(0, 1)
    await bench.take(0, 1)
    bench.child._hear(Ended([1]))
    bench.child._hear(Forsaken([0]))

    await bench.burial.release(bench.child)

    assert bench.jobs.outcomes() == {f"{0:026d}": "released"}
    assert list(bench.child.taken) == [1]


async def test_what_was_started_before_it_was_known_to_be_taken_does_not_run_twice(bench):
    bench.child.claims(0, 1, 2)
    bench.child.starts(1)
    await bench.take(0, 1, 2, delivery=Delivery.AT_MOST_ONCE)
    bench.child.starts(0)
    bench.child._hear(Forsaken([0, 1, 2]))

    await bench.burial.release(bench.child)

    assert list(bench.jobs.states().values()) == [
        JobState.DEAD,
        JobState.DEAD,
        JobState.WAITING,
    ]


async def test_what_was_started_late_is_not_taken_for_unstarted_when_the_child_dies(bench):
    bench.child.claims(0)
    await bench.take(0, delivery=Delivery.AT_MOST_ONCE)
    bench.child.starts(0)

    await bench.burial.bury(bench.child)

    assert bench.jobs.states() == {f"{0:026d}": JobState.DEAD}


async def test_a_handler_that_started_late_is_not_waited_for_for_long(bench):
    bench.child.claims(0)
    await bench.take(0)
    bench.child.starts(0)
    bench.clock.seconds += LOST_GRACE + 0.1
    bench.child._hear(Tick(1))
    await bench.watch.step()

    assert bench.child.killed


@pytest.mark.parametrize("why", ["finished", "not held", "overdue", "too long"])
async def test_what_was_taken_is_kept_no_longer_than_anybody_needs(bench, why):
    bench.child.claims(0)
    bench.child.starts(0, hard_end=1030.0 if why == "overdue" else 5000.0)
    await bench.take(0)
    match why:
        case "finished":
            bench.child._hear(Finished([0]))
        case "not held":
            bench.jobs.held = {f"{0:026d}": False}
            await bench.keeper.step()
            bench.jobs.renewals.clear()
        case "overdue":
            bench.clock.seconds += 1.0
        case _:
            bench.clock.seconds += LET_GO

    await bench.keeper.step()

    assert bench.jobs.renewals == []
    assert bench.child.heard(Lost) == [[0]]


async def test_what_the_child_cannot_write_is_not_given_back(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    bench.jobs.claims = [make_claim(0)]
    bench.child._hear(Forsaken([0]))

    await bench.burial.release(bench.child)

    assert bench.jobs.settled == []


async def test_what_the_store_does_not_take_back_is_left_to_the_end_of_its_lease(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    await bench.take(0)
    bench.child._hear(Forsaken([0]))
    bench.jobs.failures = [StoreBusy("busy", hint="") for _ in range(99)]

    with pytest.raises(StoreBusy):
        await bench.burial.release(bench.child)
    assert (bench.child.taken, bench.child.let_go) == ({}, [])

    bench.jobs.failures.clear()
    await bench.burial.bury(bench.child)
    assert bench.jobs.outcomes() == {f"{0:026d}": "abandoned"}


async def test_a_locked_job_is_given_back_when_the_lock_is_gone_and_the_others_before(bench):
    bench.child.claims(0, 1)
    bench.child.starts(0, 1)
    await bench.take(0, 1)
    bench.child._hear(Forsaken([0, 1]))
    bench.jobs.locked = {f"{0:026d}"}
    asked: list[tuple[int, int]] = []
    settle = bench.jobs.settle

    async def watched(settlements):
        asked.append((len(settlements), len(bench.engine.wakeup.notified)))
        if len(asked) == 4:
            bench.jobs.locked.clear()
        return await settle(settlements)

    bench.jobs.settle = watched
    await bench.burial.release(bench.child)

    assert asked == [(2, 0), (1, 1), (1, 1), (1, 1)]
    assert bench.jobs.outcomes() == {f"{n:026d}": "released" for n in range(2)}
    assert len(bench.engine.wakeup.notified) == 2


async def test_a_job_that_stays_locked_is_left_to_the_end_of_its_lease(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    await bench.take(0)
    bench.child._hear(Forsaken([0]))
    bench.jobs.locked = {f"{0:026d}"}

    await bench.burial.release(bench.child)

    assert bench.jobs.settled == []
    assert (bench.child.taken, bench.child.let_go) == ({}, [])


@pytest.mark.parametrize("started", [True, False])
async def test_what_a_child_stops_for_want_of_news_is_given_back_when_it_has_ended(bench, started):
    bench.child.claims(0, 1)
    if started:
        bench.child.starts(0, 1)
    bench.jobs.claims = [make_claim(number) for number in range(2)]
    bench.child._hear(Unkept([0]))
    bench.clock.seconds += 12
    await bench.keeper.step()
    await bench.burial.release(bench.child)
    assert bench.jobs.renewals == [[f"{0:026d}", f"{1:026d}"]]
    assert bench.jobs.settled == []

    bench.clock.seconds += 9
    bench.child._hear(Unkept([0]))
    bench.child._hear(Forsaken([0]))
    bench.clock.seconds += 3
    await bench.keeper.step()
    assert len(bench.jobs.renewals[1]) == 2
    await bench.burial.release(bench.child)

    assert bench.jobs.outcomes() == {f"{0:026d}": "released"}
    assert bench.child.heard(Lost) == []
    assert list(bench.child.ledger.entries) == [1]


async def test_a_result_that_was_written_though_its_run_was_to_be_stopped_stands(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    bench.child._hear(Unkept([0]))
    bench.child._hear(Finished([0]))
    bench.jobs.claims = [make_claim(0)]
    bench.child._hear(Forsaken([0]))

    await bench.burial.release(bench.child)

    assert bench.jobs.settled == []
