"""What a child does without its supervisor's word: it claims nothing, and stops what it has."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.port.conformance.builders import new_job
from lamplighter.worker.link import (
    Claimed,
    Forsaken,
    FromChild,
    Hello,
    Isolate,
    Kept,
    MakeWay,
    Started,
    Tick,
    Unkept,
)
from lamplighter.worker.process import ChildProcess, Hooks, Plan
from lamplighter.worker.rush import PORTION
from lamplighter.worker.supervisor import Supervisor
from tests.unit.worker.fakes import FakeLink, until

SPEC = "tests.unit.worker.child_program:app"
PATIENCE = 30.0


class Child(ChildProcess):
    """A child, and everything it has said; nobody answers for it."""

    def __init__(self, settings: Settings, slots: int) -> None:
        plan = Plan(spec=SPEC, settings=settings, slots=slots, queues=None, events=False)
        hooks = Hooks(
            on_hello=lambda *_: None,
            on_resync=lambda *_: None,
            on_told=lambda *_: None,
            on_convicted=lambda *_: None,
            on_hurt=lambda *_: None,
            on_let_go=lambda *_: None,
        )
        super().__init__("w/c0", plan, hooks)
        self.said: list[FromChild] = []

    def _hear(self, message: FromChild) -> None:
        self.said.append(message)
        super()._hear(message)

    def of(self, kind: type) -> list:
        return [message for message in self.said if isinstance(message, kind)]

    def claimed(self) -> list[str]:
        return [job_id for message in self.of(Claimed) for job_id, _, _ in message.jobs]


@contextlib.asynccontextmanager
async def unanswered(settings: Settings, slots: int = 4):
    """Give a child that has had time to claim since its hello."""
    child = Child(settings, slots)
    await child.start()
    try:
        await until(lambda: len(child.of(Tick)) >= 4, PATIENCE)
        yield child
    finally:
        child.kill()
        await asyncio.wait_for(child.died(), PATIENCE)


@pytest.fixture
def settings(tmp_path):
    return Settings(url=f"sqlite:///{tmp_path / 'jobs.db'}", lease=30.0, poll=0.1)


@pytest.fixture
async def jobs(settings):
    """Two jobs that wait: of the type that will run alone, and behind it of the other."""
    engine = connect(settings.url)
    await engine.open()
    wild, tame = new_job("wild"), new_job("tame")
    await engine.jobs.submit([wild, tame])
    await engine.close()
    return wild.id, tame.id


async def test_a_child_claims_nothing_before_its_hello_is_answered(settings, jobs):
    async with unanswered(settings) as child:
        assert child.ready
        assert child.claimed() == []

        child.reassure(runtime.boottime())
        await until(lambda: set(child.claimed()) == set(jobs), PATIENCE)


async def test_a_first_claim_leaves_out_what_runs_alone(settings, jobs):
    async with unanswered(settings) as child:
        child.say(Isolate({"wild": 600.0}))
        child.reassure(runtime.boottime())

        await until(lambda: not child.ledger.entries and child.claimed(), PATIENCE)
        assert child.claimed() == [jobs[1]]


@pytest.mark.parametrize("makes_way", [True, False])
async def test_a_child_that_makes_way_claims_in_small_portions(settings, makes_way):
    engine = connect(settings.url)
    await engine.open()
    await engine.jobs.submit([new_job("tame") for _ in range(3 * PORTION)])
    await engine.close()

    async with unanswered(settings, slots=3 * PORTION) as child:
        if makes_way:
            child.say(MakeWay(60.0))
        child.reassure(runtime.boottime())
        await until(lambda: len(child.claimed()) == 3 * PORTION, PATIENCE)
        portions = [len(message.jobs) for message in child.of(Claimed)]

    assert portions == ([PORTION] * 3 if makes_way else [3 * PORTION])


async def test_a_child_says_that_it_stops_what_nobody_keeps_and_then_that_it_has(settings):
    engine = connect(settings.url)
    await engine.open()
    await engine.jobs.submit([new_job("endless")])
    await engine.close()

    async with unanswered(replace(settings, lease=3.0)) as child:
        while not child.of(Started):
            child.reassure(runtime.boottime())
            await asyncio.sleep(0.05)
        await until(lambda: child.of(Forsaken), PATIENCE)

    kinds = [type(message) for message in child.said]
    assert kinds.index(Unkept) < kinds.index(Forsaken)
    assert [entry.number for entry in child.let_go] == [0]


async def test_a_hello_is_answered_with_what_runs_alone_and_then_with_leave_to_claim(settings):
    supervisor = Supervisor(SPEC, settings)
    supervisor._probation.isolate("wild", 600.0, "two processes died that ran it")
    child = Child(settings, 4)
    child._link = line = FakeLink()

    supervisor._on_hello(child, Hello(1, ("default",), (), {}))

    isolate, kept = line.said
    assert list(isolate.types) == ["wild"]
    assert isinstance(kept, Kept)
