"""As many children as wanted, one replaced by the next."""

import asyncio

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.worker.crew import Crew
from lamplighter.worker.link import Drain, Hello
from lamplighter.worker.process import ChildProcess, Hooks, Plan
from tests.unit.worker.fakes import FakeLink, until


class Child(ChildProcess):
    """A child without a process: it starts and dies when it is told to."""

    def __init__(self, name: str, crew: "World") -> None:
        hooks = Hooks(
            on_hello=lambda child, _: crew.crew.ready(child),
            on_resync=lambda *_: None,
            on_told=lambda *_: None,
            on_convicted=lambda *_: None,
            on_hurt=lambda *_: None,
            on_let_go=lambda *_: None,
        )
        plan = Plan(spec="x:y", settings=Settings(), slots=1, queues=None, events=False)
        super().__init__(name, plan, hooks)
        self._link = self.line = FakeLink()
        self.end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.born_at -= 100

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def died(self) -> int:
        status = await self.end
        self.dead = True
        return status

    def kill(self) -> None:
        if not self.end.done():
            self.end.set_result(-9)

    def is_ready(self) -> None:
        self._hear(Hello(1, (), (), {}))

    def ends(self, status: int = 0) -> None:
        self.end.set_result(status)


class World:
    def __init__(self, size: int = 2) -> None:
        self.made: list[Child] = []
        self.buried: list[tuple[str, int]] = []
        self.false_starts = 0
        self.crew = Crew(
            size, make=self._make, bury=self._bury, on_false_start=self._on_false_start
        )

    def _make(self) -> Child:
        child = Child(f"c{len(self.made)}", self)
        self.made.append(child)
        return child

    async def _bury(self, child: ChildProcess, status: int) -> None:
        self.buried.append((child.worker, status))

    def _on_false_start(self, child: ChildProcess, status: int) -> None:
        self.false_starts += 1

    async def begun(self) -> None:
        self.crew.begin()
        await asyncio.sleep(0)
        for child in self.made:
            child.is_ready()

    def names(self) -> list[str]:
        return [child.worker for child in self.crew.active]


@pytest.fixture
async def world():
    world = World()
    await world.begun()
    yield world
    world.crew.end(0.0)
    world.crew.kill_all()
    await asyncio.wait_for(world.crew.over(), 5)


async def test_a_dead_child_is_replaced_at_once(world):
    world.made[0].ends(-11)
    await until(lambda: world.buried)

    assert world.buried == [("c0", -11)]
    assert world.names() == ["c1", "c2"]


async def test_a_child_that_dies_young_is_replaced_after_a_pause(world):
    world.made[0].born_at = runtime.boottime()
    world.made[0].ends(-11)
    await until(lambda: world.buried)
    assert world.names() == ["c1"]

    await until(lambda: world.names() == ["c1", "c2"])


async def test_a_retiring_child_has_a_successor_before_it_has_ended(world):
    world.crew.retire(world.made[0], 30.0, "tired")
    await asyncio.sleep(0)

    assert world.names() == ["c1", "c2"]
    assert [message.grace for message in world.made[0].line.of(Drain)] == [30.0]
    assert world.buried == []

    world.made[0].ends()
    await until(lambda: world.buried)
    assert world.names() == ["c1", "c2"]


async def test_it_grows_at_once_and_shrinks_by_the_idlest(world):
    world.crew.resize(4, 30.0)
    await asyncio.sleep(0)
    assert len(world.names()) == 4
    for child in world.made[2:]:
        child.is_ready()
    world.made[0].ledger.claimed("f" * 16, 0, [("a", 1, "work")], 0.0)
    world.made[0].ledger.started([(0, 1e12)], 0.0)

    world.crew.resize(1, 30.0)
    assert world.names() == ["c0"]
    assert [child.draining for child in world.made] == [False, True, True, True]


async def test_a_reload_replaces_one_after_the_other_without_losing_a_place(world):
    world.crew.reload()
    await asyncio.sleep(0)
    assert world.names() == ["c0", "c1"]

    world.made[2].is_ready()
    await asyncio.sleep(0)
    assert world.names() == ["c1", "c2"]
    assert world.made[0].draining
    assert not world.made[1].draining

    world.made[3].is_ready()
    assert world.names() == ["c2", "c3"]


async def test_code_that_does_not_start_leaves_the_old_code_at_work(world):
    world.crew.reload()
    await asyncio.sleep(0)
    world.made[2].ends(3)
    await until(lambda: world.buried)

    assert world.names() == ["c0", "c1"]
    assert not any(child.draining for child in world.made[:2])
    assert world.false_starts == 0

    world.crew.reload()
    await asyncio.sleep(0)
    world.made[3].is_ready()
    assert world.names() == ["c1", "c3"]


async def test_a_second_reload_begins_again(world):
    world.crew.reload()
    await asyncio.sleep(0)
    world.crew.reload()
    await until(lambda: len(world.made) == 4)
    await until(lambda: world.buried == [("c2", -9)])
    assert world.names() == ["c0", "c1"]

    world.made[3].is_ready()
    await until(lambda: len(world.made) == 5)
    world.made[4].is_ready()
    assert world.names() == ["c3", "c4"]


async def test_starts_that_fail_are_counted_and_tried_again():
    world = World(size=1)
    world.crew.begin()
    for number in range(3):
        await until(lambda: len(world.made) == number + 1)  # noqa: B023
        world.made[number].ends(3)
        await until(lambda: world.false_starts == number + 1)  # noqa: B023
    assert world.crew.failures == 3

    world.crew.end(0.0)
    world.crew.kill_all()
    await asyncio.wait_for(world.crew.over(), 5)


class EndlessBurials(World):
    async def _bury(self, child: ChildProcess, status: int) -> None:
        await super()._bury(child, status)
        await asyncio.Event().wait()


async def test_burials_that_are_given_up_hold_up_nobody():
    world = EndlessBurials(size=1)
    await world.begun()
    world.crew.end(0.0)
    world.crew.kill_all()
    await until(lambda: world.buried)
    assert world.crew.children

    world.crew.give_up()

    await asyncio.wait_for(world.crew.over(), 5)
    assert world.crew.children == []
