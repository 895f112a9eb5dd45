"""What a supervisor decides by itself, and how long it waits for others."""

import asyncio

import pytest

from lamplighter.config import Settings
from lamplighter.model.errors import StoreBusy
from lamplighter.worker import probation
from lamplighter.worker.burial import Burial
from lamplighter.worker.ending import unless
from lamplighter.worker.link import Claimed, Forsaken, Hello, Hurt, Isolate, Started
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.supervisor import Supervisor
from tests.unit.worker.fakes import FakeLink, make_claim, make_engine, until

SETTINGS = Settings(url="sqlite:///unused.db", lease=30.0)


class Bench:
    """A supervisor without processes, whose store answers as it is told."""

    def __init__(self) -> None:
        self.supervisor = Supervisor("x:y", SETTINGS)
        self.engine = make_engine()
        self.supervisor._burial = Burial(self.engine, SETTINGS)

    def child(self, number: int) -> ChildProcess:
        child = self.supervisor._make_child(self.supervisor._plan)
        child._link = FakeLink()
        self.supervisor._crew.children.append(child)
        child._hear(Hello(number, ("default",), (), {}))
        return child

    def dies_at_work(self, child: ChildProcess) -> asyncio.Task[None]:
        child._hear(Claimed("f" * 16, 0, 0.0, [("a", 1, "bad")]))
        child._hear(Started([(0, 1e12)], 0.0))
        child.dead = True
        self.supervisor._crew.children.remove(child)
        return asyncio.ensure_future(self.supervisor._bury(child, -9))


@pytest.fixture
async def bench():
    return Bench()


def isolated(child: ChildProcess) -> list[set[str]]:
    return [set(message.types) for message in child._link.of(Isolate)]


async def test_a_type_is_isolated_though_the_dead_cannot_be_buried(bench):
    bench.engine.jobs.gate = asyncio.Event()
    survivor = bench.child(0)
    burials = [bench.dies_at_work(bench.child(number)) for number in (1, 2)]
    await until(lambda: isolated(survivor))

    assert isolated(survivor) == [{"bad"}]
    assert isolated(bench.child(3)) == [{"bad"}]
    assert not any(burial.done() for burial in burials)

    bench.engine.jobs.gate.set()
    await asyncio.gather(*burials)


async def test_hurt_processes_that_wait_for_their_neighbours_do_not_become_many(bench, monkeypatch):
    monkeypatch.setattr(probation, "AGAIN", 0.0)  # as if much time had passed between them
    monkeypatch.setattr(bench.supervisor._crew, "_fill", lambda: None)
    first, second, third = (bench.child(number) for number in range(3))

    first._hear(Hurt(("bad",), "a handler did it"))
    assert isolated(third) == []
    second._hear(Hurt(("bad",), "a handler did it"))

    assert isolated(third) == [{"bad"}]
    assert first.draining
    assert second.draining
    assert not third.draining


async def test_a_burial_that_fails_still_makes_its_types_suspects(bench, monkeypatch):
    async def fails(_child: ChildProcess) -> None:
        raise StoreBusy("busy", hint="")

    monkeypatch.setattr(bench.supervisor._burial, "bury", fails)
    survivor = bench.child(0)
    for number in (1, 2):
        with pytest.raises(StoreBusy):
            await bench.dies_at_work(bench.child(number))

    assert isolated(survivor) == [{"bad"}]


async def test_all_that_a_child_lets_go_of_is_given_back_together(bench):
    child, jobs = bench.child(0), bench.engine.jobs
    jobs.claims = [make_claim(number) for number in range(4)]
    for number, claim in enumerate(jobs.claims):
        job, fence = claim.job, claim.fence
        child._hear(Claimed(fence.nonce, number, 0.0, [(job.id, fence.lease, job.type)]))
    child.lose([0, 1, 2])
    for number in range(3):
        child._hear(Forsaken([number]))
    await until(lambda: not child.taken)

    assert [len(batch) for batch in jobs.settled] == [3]
    assert set(jobs.outcomes().values()) == {"released"}

    child.lose([3])
    child._hear(Forsaken([3]))
    await until(lambda: not child.taken)
    assert [len(batch) for batch in jobs.settled] == [3, 1]


async def test_what_does_not_heed_the_end_is_left_behind():
    event, free = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                event.clear()

    asyncio.get_running_loop().call_soon(event.set)
    async with asyncio.timeout(5):
        assert not await unless(event, stubborn())
    assert not event.is_set()
    free.set()


async def test_what_is_asked_for_after_the_end_still_gets_a_turn():
    event, turns = asyncio.Event(), []
    event.set()

    async def work() -> None:
        turns.append("first")
        await asyncio.Event().wait()

    assert not await unless(event, work())
    assert turns == ["first"]


async def test_what_ends_before_the_end_is_done_and_its_error_is_raised():
    async def fail() -> None:
        raise StoreBusy("busy", hint="")

    async def succeed() -> None:
        await asyncio.sleep(0)

    assert await unless(asyncio.Event(), succeed())
    with pytest.raises(StoreBusy):
        await unless(asyncio.Event(), fail())
