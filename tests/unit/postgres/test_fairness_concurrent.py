"""Fairness among claimers with connections of their own, as workers on many machines are."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from lamplighter.connect import connect
from lamplighter.model.job import Claim, Level
from lamplighter.port.conformance.builders import claim, completed, jobs_of, new_job, submit
from lamplighter.port.store import Engine
from lamplighter.port.values import QueueSettings, TenantSettings
from tests.unit.postgres.plans.stores import FULL

CLAIMERS = 8
WINDOW = 1_000
WEIGHTS = {"one": 1, "three": 3, "six": 6}
FLOOD = 100_000 if FULL else 5_000

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def engines(url: str) -> AsyncIterator[list[Engine]]:
    """Several engines on one store, none of which shares a connection with another."""
    async with AsyncExitStack() as stack:
        opened: list[Engine] = []
        for _ in range(CLAIMERS):
            engine = connect(url)
            await engine.open()
            stack.push_async_callback(engine.close)
            opened.append(engine)
        yield opened


async def test_weights_are_kept_in_every_window_of_eight_claimers(
    engines: list[Engine],
) -> None:
    total = 3 * WINDOW
    for tenant, weight in WEIGHTS.items():
        settings = TenantSettings(weight=weight)
        await engines[0].settings.put_tenant(tenant, settings, by="test", reason="for the test")
        await submit(engines[0], *jobs_of(tenant, total * weight // 10 + 150))

    taken = await _claim_together(engines, total)

    assert len({one.handout for one in taken}) == len(taken)
    assert len({one.job.id for one in taken}) == len(taken)
    tenants = [one.job.tenant for one in taken[:total]]
    for start in range(0, total - WINDOW + 1, 25):
        shares = Counter(tenants[start : start + WINDOW])
        for tenant, weight in WEIGHTS.items():
            share = WINDOW * weight / 10
            assert abs(shares[tenant] - share) <= max(0.05 * share, 10), (start, shares)


async def test_ten_jobs_that_come_while_eight_claim_a_flood_are_among_the_next_forty(
    engines: list[Engine],
) -> None:
    await submit(engines[0], *jobs_of("flood", FLOOD))
    claiming = asyncio.create_task(_claim_together(engines, 2_000))
    await _until_handed_out(engines[0], 500)

    small = set(await submit(engines[0], *jobs_of("small", 10)))
    seen = (await engines[0].inspector.queues())[0].handouts
    taken = await claiming

    # All that was handed out when the count was read, or was about to be, comes before.
    numbers = [one.handout for one in taken if one.job.id in small]
    assert len(numbers) == len(small)
    assert max(numbers) <= seen + 40


async def test_nobody_starves_while_eight_claim_what_is_critical(
    engines: list[Engine],
) -> None:
    settings = QueueSettings(max_wait_ms=1)
    await engines[0].settings.put_queue("default", settings, by="test", reason="for the test")
    (patient,) = await submit(engines[0], new_job(tenant="patient", level=Level.LOW))
    loud = [new_job(tenant=f"loud-{n % 5}", level=Level.CRITICAL) for n in range(1_000)]
    await submit(engines[0], *loud)
    await asyncio.sleep(0.01)

    taken = await _claim_together(engines, 200)

    (handout,) = [one.handout for one in taken if one.job.id == patient]
    assert handout <= 10


async def _until_handed_out(engine: Engine, many: int) -> None:
    async with asyncio.timeout(60):
        while (await engine.inspector.queues())[0].handouts < many:
            pass


async def _claim_together(engines: list[Engine], total: int) -> list[Claim]:
    """Let all claim and settle side by side until there are enough; in the order of hand-outs."""
    taken: list[Claim] = []

    async def work(engine: Engine) -> None:
        while len(taken) < total:
            mine = await claim(engine, 7)
            taken.extend(mine)
            await engine.jobs.settle([completed(one) for one in mine])

    await asyncio.gather(*(work(engine) for engine in engines))
    return sorted(taken, key=lambda one: one.handout)
