"""A worker's signs of life, and what it learns from their answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.port.values import Beat, NewWorker, TypeInfo
from lamplighter.worker.membership import WAIT_FOR_HELLO, Membership
from lamplighter.worker.supervisor import Supervisor
from tests.unit.worker.fakes import until


class Member:
    def __init__(self, name: str, *types: TypeInfo, ready: bool = True) -> None:
        self.id = name
        self.serving = False
        self.ready = ready
        self.types = types
        self.slot: int | None = None

    def member(self) -> NewWorker | None:
        if not self.ready:
            return None
        return NewWorker(
            id=self.id, host="here", pid=1, queues=("default",), slots=1, types=self.types
        )

    def running(self) -> int:
        return 3

    def joined(self, member: NewWorker) -> None:
        self.slot = member.version_slot

    def unstarted(self) -> list[str]:
        return []


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


def version(digest: str, name: str = "charge") -> TypeInfo:
    return TypeInfo(name=name, schema="{}", hash=digest, queue="default")


async def test_workers_of_one_release_share_a_slot_and_another_release_takes_its_own(
    engine, settings
):
    mail = version("m", "mail")
    members = [
        Member("a", version("old"), mail),
        Member("b", version("old"), mail),
        Member("c", version("new"), mail),
        Member("d", version("s", "scan")),
        Member("e"),
    ]
    for member in members:
        await Membership(engine, settings, member).step()

    assert [member.slot for member in members] == [1, 1, 2, 1, 0]
    slots = {
        row.hash: tuple(seat.slot for seat in row.seats) for row in await engine.inspector.types()
    }
    assert slots == {"old": (1,), "new": (2,), "m": (1, 2), "s": (1,)}


async def test_releases_that_join_at_one_moment_get_slots_of_their_own(engine, settings):
    members = [Member(name, version(name)) for name in "abcdefgh"]

    await asyncio.gather(*(Membership(engine, settings, one).step() for one in members))

    assert sorted(member.slot for member in members) == [1, 2, 3, 4, 5, 6, 7, 8]
    late = Member("late", version("late"))
    await Membership(engine, settings, late).step()
    assert late.slot == 0


async def test_a_slot_is_used_again_when_its_last_worker_has_left(engine, settings):
    first, second = Member("a", version("old")), Member("b", version("new"))
    membership = Membership(engine, settings, first)
    await membership.step()
    await Membership(engine, settings, second).step()

    await membership.stop()
    third = Member("c", version("newest"))
    await Membership(engine, settings, third).step()

    assert (first.slot, second.slot, third.slot) == (1, 2, 1)


async def test_a_worker_that_was_silent_for_long_looks_for_a_slot_again(
    engine, settings, monkeypatch
):
    frozen, other = Member("a", version("old")), Member("b", version("new"))
    membership = Membership(engine, settings, frozen)
    await membership.step()
    # Others have taken it for dead meanwhile, and its slot for theirs.
    await engine.membership.join(replace(other.member(), version_slot=1))
    later = runtime.boottime() + 31
    monkeypatch.setattr(runtime, "boottime", lambda: later)

    await membership.step()

    assert frozen.slot == 2


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
    async def beat(_worker: str, _running: int, _unstarted: Sequence[str] = ()) -> Beat:
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
