"""What a process that stood still believes of its leases."""

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.worker.burial import Burial
from lamplighter.worker.keeper import Keeper
from lamplighter.worker.link import Lost
from lamplighter.worker.standstill import Standstill
from lamplighter.worker.watch import Watch
from tests.unit.worker.fakes import Clock, make_engine
from tests.unit.worker.kept_child import Child

SETTINGS = Settings(url="sqlite:///unused.db", lease=30.0)


class Bench:
    """A supervisor's parts, and a child that is heard of only when a test says so."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.engine = make_engine()
        self.child = Child()
        self.keeper = Keeper(self.engine, SETTINGS, lambda: [self.child])
        burial = Burial(self.engine, SETTINGS)
        self.watch = Watch(SETTINGS, burial, lambda: [self.child], lambda *_: None)


@pytest.fixture
async def bench():
    clock = Clock()
    with runtime.install(clock):
        yield Bench(clock)


def test_only_what_was_believed_in_before_the_standstill_is_excused_and_not_for_long():
    slept = Standstill(30.0)
    assert not slept.excuses(100.0, 100.0)

    slept.note(100.0, 190.0)

    assert not slept.excuses(99.0, 190.0)
    assert slept.excuses(101.0, 190.0)
    assert slept.excuses(101.0, 200.9)
    assert not slept.excuses(101.0, 201.0)


async def test_leases_that_ended_while_all_stood_still_are_renewed_and_not_given_up(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    await bench.watch.step()
    bench.clock.seconds += 90

    await bench.watch.step()
    assert bench.child.heard(Lost) == []
    await bench.keeper.step()
    bench.clock.seconds += 5
    await bench.watch.step()

    assert bench.engine.jobs.renewals == [[f"{0:026d}"]]
    assert bench.child.heard(Lost) == []


async def test_a_store_may_take_longer_to_wake(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    await bench.watch.step()
    bench.clock.seconds += 90
    await bench.watch.step()

    for _ in range(20):
        bench.clock.seconds += 0.25
        await bench.watch.step()
    await bench.keeper.step()
    bench.clock.seconds += 10
    await bench.watch.step()

    assert bench.engine.jobs.renewals == [[f"{0:026d}"]]
    assert bench.child.heard(Lost) == []


async def test_leases_that_are_not_renewed_soon_after_a_standstill_are_given_up(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    await bench.watch.step()
    bench.clock.seconds += 90
    await bench.watch.step()

    for _ in range(46):
        bench.clock.seconds += 0.25
        await bench.watch.step()

    assert bench.child.heard(Lost) == [[0]]


async def test_what_the_store_calls_lost_after_a_standstill_is_stopped(bench):
    bench.child.claims(0)
    bench.child.starts(0)
    await bench.watch.step()
    bench.clock.seconds += 90
    bench.engine.jobs.held = {f"{0:026d}": False}

    await bench.watch.step()
    await bench.keeper.step()

    assert bench.child.heard(Lost) == [[0]]


async def test_a_child_that_slept_as_long_as_its_supervisor_is_not_taken_for_silent(bench):
    bench.child.claims(0, 1)
    bench.child.starts(0)
    await bench.watch.step()
    bench.clock.seconds += 90
    await bench.watch.step()
    bench.clock.seconds += 0.25
    await bench.watch.step()

    assert bench.child.silent_since is None
