"""A worker's signs of life, and what it learns from their answers."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.port.values import Beat, NewWorker
from lamplighter.worker.membership import WAIT_FOR_HELLO, Membership
from lamplighter.worker.supervisor import Supervisor
from tests.unit.worker.fakes import until


class Member:
    def __init__(self, name: str, *, ready: bool = True) -> None:
        self.id = name
        self.serving = False
        self.ready = ready

    def member(self) -> NewWorker | None:
        if not self.ready:
            return None
        return NewWorker(id=self.id, host="here", pid=1, queues=("default",), slots=1)

    def running(self) -> int:
        return 3


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(url=f"sqlite:///{tmp_path}/jobs.db", children=1, beat=0.1)


@pytest.fixture
async def engine(settings: Settings):
    engine = connect(settings.url)
    await engine.open()
    yield engine
    await engine.close()


async def test_a_worker_joins_once_there_is_something_to_say(engine, settings):
    member = Member("a", ready=False)
    membership = Membership(engine, settings, member)

    assert await membership.step() == WAIT_FOR_HELLO
    assert await engine.inspector.workers() == []
    member.ready = True
    assert await membership.step() == pytest.approx(settings.beat, rel=0.1)

    assert [worker.id for worker in await engine.inspector.workers()] == ["a"]
    assert member.serving


async def test_a_forgotten_worker_joins_again(engine, settings):
    membership = Membership(engine, settings, Member("a"))
    await membership.step()
    await engine.membership.leave("a")

    await membership.step()

    assert [worker.id for worker in await engine.inspector.workers()] == ["a"]


async def test_each_sign_of_life_tells_how_many_workers_there_are(engine, settings):
    first, second = [Membership(engine, settings, Member(name)) for name in "ab"]
    assert first.fleet.workers == 1
    await first.step()
    await second.step()

    assert (first.fleet.workers, second.fleet.workers) == (1, 2)
    await first.step()
    assert first.fleet.workers == 2
    await second.stop()
    await first.step()
    assert first.fleet.workers == 1


@pytest.mark.parametrize(
    ("workers", "seconds"), [(1, 5.0), (1_000, 5.0), (1_200, 6.0), (50_000, 6.5)]
)
async def test_of_very_many_workers_each_gives_fewer_signs_of_life(
    engine, settings, monkeypatch, workers, seconds
):
    async def beat(_worker: str, _running: int) -> Beat:
        return Beat(known=True, settings_version=1, workers=workers)

    monkeypatch.setattr(engine.membership, "beat", beat)
    membership = Membership(engine, replace(settings, beat=5.0), Member("a"))
    await membership.step()

    found = [await membership.step() for _ in range(50)]
    assert seconds * 0.9 <= min(found) < seconds < max(found) <= seconds * 1.1


async def test_services_beside_a_worker_are_told_how_many_workers_there_are(engine, settings):
    counts = []

    def services(_engine, _settings, fleet):
        counts.append(lambda: fleet.workers)
        return ()

    await engine.membership.join(Member("other").member())
    supervisor = Supervisor("tests.system.program:app", settings, services=services)
    running = asyncio.create_task(supervisor.run())

    await until(lambda: counts and counts[0]() == 2, 30.0)

    supervisor.drain()
    await running
