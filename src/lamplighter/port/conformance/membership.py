"""Membership: who is alive, what they know, and who holds a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.port.conformance.builders import running
from lamplighter.port.conformance.schedule_builders import MINUTE, new_schedule, put
from lamplighter.port.values import NewWorker, TypeInfo, TypeSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

MAIL = TypeInfo(
    name="mail",
    schema='{"type": "object"}',
    hash="h1",
    queue="letters",
    options={"timeout": 5.0, "priority": "high"},
)


def worker(name: str = "w1", *types: TypeInfo) -> NewWorker:
    return NewWorker(
        id=name, host="machine", pid=7, queues=("default", "letters"), slots=4, types=types
    )


async def test_a_worker_that_joins_is_listed(engine: Engine, clock: VirtualClock) -> None:
    beat = await engine.membership.join(worker("w1", MAIL))

    assert beat.known
    (found,) = await engine.inspector.workers()
    assert (found.id, found.host, found.pid, found.slots) == ("w1", "machine", 7, 4)
    assert (found.queues, found.types) == (("default", "letters"), ("mail",))
    assert (found.joined_at_ms, found.beat_at_ms) == (clock.now_ms(), clock.now_ms())
    assert (found.running, found.state) == (0, "alive")


async def test_joining_twice_is_joining_once(engine: Engine) -> None:
    await engine.membership.join(worker("w1", MAIL))

    assert (await engine.membership.join(worker("w1", MAIL))).known

    assert len(await engine.inspector.workers()) == 1
    assert len(await engine.inspector.types()) == 1


async def test_joining_publishes_the_types_a_worker_knows(engine: Engine) -> None:
    await engine.membership.join(worker("w1", MAIL))
    await engine.membership.join(worker("w2", MAIL))

    (row,) = await engine.inspector.types()

    assert (row.name, row.queue, row.schema, row.hash) == ("mail", "letters", MAIL.schema, "h1")
    assert dict(row.options) == dict(MAIL.options)
    assert row.live_workers == 2
    assert row.held is None


async def test_two_versions_of_a_type_are_two_rows(engine: Engine) -> None:
    newer = TypeInfo(name="mail", schema="{}", hash="h2", queue="letters")
    await engine.membership.join(worker("w1", MAIL))
    await engine.membership.join(
        worker("w2", newer, TypeInfo(name="archive", schema="{}", hash="h3", queue="default"))
    )

    rows = await engine.inspector.types()

    assert [row.name for row in rows] == ["archive", "mail", "mail"]
    assert {row.hash for row in rows} == {"h1", "h2", "h3"}
    assert {row.live_workers for row in rows} == {1}


async def test_a_published_type_outlives_its_last_worker(engine: Engine) -> None:
    await engine.membership.join(worker("w1", MAIL))
    await engine.membership.leave("w1")

    (row,) = await engine.inspector.types()

    assert (row.hash, row.live_workers) == ("h1", 0)


async def test_a_beat_keeps_a_worker_alive(engine: Engine, clock: VirtualClock) -> None:
    await engine.membership.join(worker("w1"))
    clock.advance(seconds=14)

    beat = await engine.membership.beat("w1", 3)

    assert beat.known
    clock.advance(seconds=14)
    (found,) = await engine.inspector.workers()
    assert (found.state, found.running) == ("alive", 3)


@pytest.mark.parametrize(
    ("seconds", "state"), [(0, "alive"), (14, "alive"), (16, "suspect"), (31, "dead")]
)
async def test_silence_makes_a_worker_suspect_and_then_dead(
    engine: Engine, clock: VirtualClock, seconds: int, state: str
) -> None:
    await engine.membership.join(worker("w1", MAIL))
    clock.advance(seconds=seconds)

    (found,) = await engine.inspector.workers()

    assert found.state == state


async def test_no_handler_of_a_dead_worker_counts_as_running(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.membership.join(worker("w1", MAIL))
    await engine.membership.beat("w1", 3)
    clock.advance(seconds=16)
    (found,) = await engine.inspector.workers()
    assert (found.state, found.running) == ("suspect", 3)

    clock.advance(seconds=15)
    (found,) = await engine.inspector.workers()

    assert (found.state, found.running) == ("dead", 0)


async def test_the_beat_of_a_forgotten_worker_is_told_so(engine: Engine) -> None:
    assert not (await engine.membership.beat("nobody", 0)).known

    await engine.membership.join(worker("w1"))
    await engine.membership.leave("w1")

    assert not (await engine.membership.beat("w1", 0)).known
    assert await engine.inspector.workers() == []


async def test_leaving_twice_or_without_joining_is_no_error(engine: Engine) -> None:
    await engine.membership.join(worker("w1"))
    await engine.membership.leave("w1")
    await engine.membership.leave("w1")
    await engine.membership.leave("nobody")


async def test_beats_carry_the_settings_version(engine: Engine) -> None:
    before = (await engine.membership.join(worker("w1"))).settings_version
    assert (await engine.membership.beat("w1", 0)).settings_version == before

    await engine.settings.put_type("mail", TypeSettings(held=True), by="test", reason="wait")

    assert (await engine.membership.beat("w1", 0)).settings_version > before


async def test_beats_carry_how_many_workers_are_not_dead(
    engine: Engine, clock: VirtualClock
) -> None:
    async def told(name: str) -> int:
        return (await engine.membership.beat(name, 0)).workers

    assert await told("nobody") == 0
    joined = [(await engine.membership.join(worker(name))).workers for name in ("a", "b", "c", "a")]
    assert joined == [1, 2, 3, 3]
    clock.advance(seconds=20)
    assert await told("a") == 3

    clock.advance(ms=9_999)
    assert await told("nobody") == 3
    clock.advance(ms=1)
    assert await told("nobody") == 1
    assert await told("b") == 2
    assert (await engine.membership.join(worker("c"))).workers == 3

    await engine.membership.leave("a")
    assert await told("b") == 2


async def test_workers_are_listed_oldest_first(engine: Engine, clock: VirtualClock) -> None:
    for name in ("z", "a", "m"):
        await engine.membership.join(worker(name))
        clock.advance(seconds=1)
    await engine.membership.beat("z", 1)

    assert [found.id for found in await engine.inspector.workers()] == ["z", "a", "m"]


async def test_a_role_is_held_by_one_until_its_term_ends(
    engine: Engine,
    clock: VirtualClock,
    engine_factory: Callable[[], Awaitable[Engine]],
) -> None:
    other = await engine_factory()
    assert await engine.membership.lead("prune", "w1", 10_000)
    assert not await other.membership.lead("prune", "w2", 10_000)

    clock.advance(ms=10_001)

    assert await other.membership.lead("prune", "w2", 10_000)
    assert not await engine.membership.lead("prune", "w1", 10_000)


async def test_a_holder_renews_its_role(engine: Engine, clock: VirtualClock) -> None:
    for _ in range(4):
        assert await engine.membership.lead("prune", "w1", 10_000)
        clock.advance(seconds=9)
    assert not await engine.membership.lead("prune", "w2", 10_000)


async def test_roles_are_held_apart_from_each_other(engine: Engine) -> None:
    assert await engine.membership.lead("prune", "w1", 10_000)
    assert await engine.membership.lead("statistics", "w2", 10_000)


async def test_a_heartbeat_never_denies_that_a_lease_has_ended(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.membership.join(worker())
    await running(engine)
    clock.advance(ms=30_000)

    assert (await engine.membership.beat("w1", 1)).overdue


async def test_a_heartbeat_never_denies_that_a_schedule_is_due(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.membership.join(worker())
    await put(engine, new_schedule())
    clock.advance(ms=MINUTE)

    assert (await engine.membership.beat("w1", 0)).overdue
