"""Fairness: no tenant waits because another has much to do."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.job import Level
from lamplighter.port.conformance.builders import (
    claim,
    handed_out,
    jobs_of,
    new_job,
    submit,
)
from lamplighter.port.values import TenantSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import Claim
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

FLOOD = 100_000 if os.environ.get("LAMPLIGHTER_FULL") == "1" else 5_000
WEIGHTS = {"one": 1, "three": 3, "six": 6}
WINDOW = 1_000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("waited", [0, 600], ids=["just arrived", "overdue"])
async def test_ten_jobs_beside_a_flood_are_among_the_next_forty(
    engine: Engine, clock: VirtualClock, waited: int
) -> None:
    await submit(engine, *jobs_of("flood", FLOOD))
    await claim(engine, 100)
    clock.advance(seconds=waited)
    small = await submit(engine, *jobs_of("small", 10))

    assert set(small) <= set(await handed_out(engine, 40))


@pytest.mark.timeout(600)
async def test_a_flood_that_falls_due_at_once_stands_beside_a_small_tenant(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, *jobs_of("flood", FLOOD, delay_ms=1_000))
    small = await submit(engine, *jobs_of("small", 10, delay_ms=1_000))
    clock.advance(seconds=1)
    (critical,) = await submit(engine, new_job(level=Level.CRITICAL))

    order = await handed_out(engine, 40)

    assert order[0] == critical
    assert set(small) <= set(order)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("claimers", [2, 8])
async def test_weights_are_kept_in_every_window(engine: Engine, claimers: int) -> None:
    await _weigh(engine, WEIGHTS)
    total = 3 * WINDOW
    for tenant, weight in WEIGHTS.items():
        # A little more than its share, so that nobody runs dry before the end.
        await submit(engine, *jobs_of(tenant, total * weight // 10 + 50))

    tenants = _in_order(await _claim_together(engine, total, claimers))

    for start in range(0, total - WINDOW + 1, 25):
        shares = Counter(tenants[start : start + WINDOW])
        for tenant, weight in WEIGHTS.items():
            share = WINDOW * weight / 10
            assert abs(shares[tenant] - share) <= max(0.05 * share, 10), (start, shares)


async def test_hand_outs_to_who_waited_longest_do_not_wipe_out_the_others_weights(
    engine: Engine, clock: VirtualClock
) -> None:
    await _weigh(engine, {"oldest": 1, "heavy": 100, "light": 1})
    # Every tenth hand-out goes to the oldest, which is therefore far ahead in virtual time.
    await submit(engine, *jobs_of("oldest", 500))
    await submit(engine, *jobs_of("heavy", 2_000), *jobs_of("light", 500))
    clock.advance(seconds=3_600)

    shares = Counter(_in_order(await claim(engine, 1_000)))

    assert shares["light"] <= 20
    assert shares["heavy"] >= 870


async def test_a_changed_weight_shows_within_the_next_hundred(engine: Engine) -> None:
    for tenant in ("left", "right"):
        await submit(engine, *jobs_of(tenant, 400))
    before = Counter(_in_order(await claim(engine, 200)))
    assert abs(before["left"] - 100) <= 2

    await _weigh(engine, {"left": 9})

    after = Counter(_in_order(await claim(engine, 100)))
    assert abs(after["left"] - 90) <= 5


async def test_a_higher_cost_is_paid_with_fewer_hand_outs(engine: Engine) -> None:
    await submit(engine, *(new_job(tenant="dear", cost=4) for _ in range(200)))
    await submit(engine, *jobs_of("cheap", 200))

    shares = Counter(_in_order(await claim(engine, 100)))

    assert abs(shares["cheap"] - 80) <= 2


async def test_a_tenant_that_was_idle_has_not_saved_up(engine: Engine) -> None:
    busy = [("busy", 600), ("idle", 1)]
    for tenant, count in busy:
        await submit(engine, *jobs_of(tenant, count))
    await claim(engine, 300)
    await submit(engine, *jobs_of("idle", 300))

    shares = Counter(_in_order(await claim(engine, 100)))

    assert abs(shares["idle"] - 50) <= 1


async def test_a_tenant_that_was_alone_is_not_punished_for_it(engine: Engine) -> None:
    await submit(engine, *jobs_of("early", 600))
    await claim(engine, 300)
    await submit(engine, *jobs_of("late", 300))

    shares = Counter(_in_order(await claim(engine, 100)))

    assert abs(shares["early"] - 50) <= 1


async def test_equal_tenants_go_in_the_order_of_their_names_bytes(engine: Engine) -> None:
    # In UTF-16 the last two would change places; with case folded, the first two.
    names = ["Z", "a", "b", "ä", "\uff5a", "\U0001d51e"]
    for name in reversed(names):
        await submit(engine, *jobs_of(name, 2))

    assert _in_order(await claim(engine, 12)) == names * 2


async def test_two_types_of_one_tenant_share_one_virtual_time(engine: Engine) -> None:
    await submit(engine, *jobs_of("both", 100, type="mail"), *jobs_of("both", 100, type="scan"))
    await submit(engine, *jobs_of("plain", 100, type="mail"))

    shares = Counter(_in_order(await claim(engine, 100, types=("mail", "scan"))))

    assert abs(shares["both"] - 50) <= 1


async def test_the_virtual_time_is_shared_by_claims_of_one_type_each(engine: Engine) -> None:
    for tenant in ("both", "plain"):
        await submit(engine, *jobs_of(tenant, 100, type="mail"))
    await submit(engine, *jobs_of("both", 100, type="scan"))
    await claim(engine, 20, types=("scan",))

    # What it got as `scan` is paid for when `mail` is handed out; by name it would go first.
    assert _in_order(await claim(engine, 3, types=("mail",))) == ["plain", "both", "plain"]


async def test_who_stands_in_two_lanes_hides_nobody_who_was_paid_in_a_third(engine: Engine) -> None:
    await submit(engine, *jobs_of("A", 2, type="mail"), *jobs_of("A", 2, type="scan"))
    await submit(engine, *jobs_of("B", 2, type="mail"), *jobs_of("C", 2, type="mail"))
    await submit(engine, *jobs_of("C", 1, type="print"))
    await claim(engine, 1, types=("print",))

    assert _in_order(await claim(engine, 3, types=("mail", "scan"))) == ["A", "B", "A"]


async def test_levels_have_their_own_virtual_times(engine: Engine) -> None:
    await submit(engine, *(new_job(tenant="a", level=Level.HIGH) for _ in range(50)))
    for tenant in ("a", "b"):
        await submit(engine, *jobs_of(tenant, 50))
    await claim(engine, 50)

    shares = Counter(_in_order(await claim(engine, 50)))

    assert abs(shares["a"] - 25) <= 1


@pytest.mark.parametrize("level", list(Level))
async def test_nobody_starves_under_a_flood_of_critical_jobs(
    engine: Engine, clock: VirtualClock, level: Level
) -> None:
    (waiting,) = await submit(engine, new_job(tenant="patient", level=level))
    clock.advance(seconds=61)
    await submit(engine, *(new_job(tenant="loud", level=Level.CRITICAL) for _ in range(100)))

    assert waiting in await handed_out(engine, 10)


async def test_the_overdue_of_many_tenants_are_served_oldest_first(
    engine: Engine, clock: VirtualClock
) -> None:
    ids: list[str] = []
    for name in ("c", "a", "b"):
        ids += await submit(engine, new_job(tenant=name, level=Level.LOW))
        clock.advance(seconds=1)
    clock.advance(seconds=60)
    await submit(engine, *(new_job(tenant="loud", level=Level.CRITICAL) for _ in range(100)))

    taken = await claim(engine, 30)

    assert [one.job.id for one in taken if one.handout % 10 == 0] == ids


async def _weigh(engine: Engine, weights: dict[str, int]) -> None:
    for tenant, weight in weights.items():
        await engine.settings.put_tenant(
            tenant, TenantSettings(weight=weight), by="test", reason="for the test"
        )


async def _claim_together(engine: Engine, total: int, claimers: int) -> list[Claim]:
    """Let several claimers take jobs side by side until there are enough."""
    taken: list[Claim] = []

    async def take() -> None:
        while len(taken) < total:
            taken.extend(await claim(engine, 7))

    await asyncio.gather(*(take() for _ in range(claimers)))
    return sorted(taken, key=lambda one: one.handout)[:total]


def _in_order(claims: Sequence[Claim]) -> list[str]:
    """Whose jobs were handed out, in the order of the hand-out numbers."""
    return [one.job.tenant for one in sorted(claims, key=lambda one: one.handout)]
