"""Single use: what is spent once is spent for everybody, until nobody would take it any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

CODE = "c" * 64
HOUR_MS = 3_600_000


async def test_only_the_first_spends_it(engine: Engine) -> None:
    assert await engine.access.spend(CODE, "a", HOUR_MS)

    assert not await engine.access.spend(CODE, "b", HOUR_MS)
    assert await engine.access.spend("d" * 64, "b", HOUR_MS)


async def test_of_many_at_once_one_spends_it(engine: Engine) -> None:
    tries = (engine.access.spend(CODE, f"h-{n}", HOUR_MS) for n in range(10))

    assert sum(await asyncio.gather(*tries)) == 1


async def test_spending_it_again_after_a_lost_reply_is_spending_it_once(engine: Engine) -> None:
    assert await engine.access.spend(CODE, "a", HOUR_MS)

    assert await engine.access.spend(CODE, "a", HOUR_MS)
    assert not await engine.access.spend(CODE, "b", HOUR_MS)


async def test_what_is_spent_can_be_read(engine: Engine) -> None:
    assert not await engine.access.spent(CODE)
    await engine.access.spend(CODE, "a", HOUR_MS)

    assert await engine.access.spent(CODE)
    assert not await engine.access.spent("d" * 64)


async def test_awkward_names_are_told_apart(engine: Engine) -> None:
    names = ["", " ", "'", "☃", "a:b", "a%b", "A", "a"]

    assert [await engine.access.spend(name, "a", HOUR_MS) for name in names] == [True] * len(names)
    assert [await engine.access.spend(name, "b", HOUR_MS) for name in names] == [False] * len(names)


async def test_it_stays_spent_until_its_time_is_over_and_is_then_pruned(
    engine: Engine, clock: VirtualClock
) -> None:
    for number in range(3):
        await engine.access.spend(f"short-{number}", "a", HOUR_MS)
    await engine.access.spend(CODE, "a", 3 * HOUR_MS)
    assert await engine.access.prune_access(0, 10) == 0
    clock.advance(seconds=3601)

    assert await engine.access.prune_access(0, 2) == 2
    assert await engine.access.prune_access(0, 10) == 1
    assert await engine.access.prune_access(0, 10) == 0
    assert await engine.access.spent(CODE)
    assert not await engine.access.spent("short-0")
