"""What operators do costs the same, however much waits; counted in commands of the server."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from lamplighter.model.activity import Tally
from lamplighter.model.filters import Filter
from lamplighter.port.conformance.builders import claim, completed, submit
from lamplighter.port.values import QueueSettings, Retention, TenantSettings
from tests.unit.redis.stores import Store, opened

BY = {"by": "test", "reason": "for the test"}
HELD, SLOW = TenantSettings(held=True), QueueSettings(max_wait_ms=5)
Act = Callable[[Store, list[str]], Awaitable[object]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 1) as store:
        yield store


def commands(store: Store) -> tuple[int, int]:
    """How many commands the server has run, those inside scripts too, and how many scripts."""
    run = store.client.info("commandstats")
    scripts = sum(one["calls"] for name, one in run.items() if name.startswith("cmdstat_eval"))
    return sum(one["calls"] for one in run.values()), scripts


async def backlog(store: Store, count: int) -> list[str]:
    jobs = [
        store.new_job(tenant="default" if n % 2 else f"t{n % 50}", delay_ms=0 if n % 3 else 10**6)
        for n in range(count)
    ]
    return await submit(store.engine, *jobs)


async def cost(store: Store, act: Act, ids: list[str]) -> int:
    await act(store, ids[:1])  # the script is known from now on
    before = commands(store)[0]
    await act(store, ids[1:2])
    return commands(store)[0] - before


ACTS: dict[str, Act] = {
    "hold": lambda store, ids: store.engine.jobs.hold(ids, **BY),
    "cancel": lambda store, ids: store.engine.jobs.cancel(ids, **BY),
    "retry": lambda store, ids: store.engine.jobs.retry(ids, **BY),
    "put_tenant": lambda store, _: store.engine.settings.put_tenant("default", HELD, **BY),
    "put_queue": lambda store, _: store.engine.settings.put_queue("default", SLOW, **BY),
    "counts": lambda store, _: store.engine.inspector.counts(),
    "explain": lambda store, ids: store.engine.inspector.explain(ids[0]),
    "queues": lambda store, _: store.engine.inspector.queues(),
    "queue": lambda store, _: store.engine.inspector.queue("default"),
    "tenant": lambda store, _: store.engine.inspector.tenant("default"),
    "standing": lambda store, _: store.engine.activity.standing(),
    "tally": lambda store, _: store.engine.activity.tally("w", 1, Tally(started=1)),
    "jobs": lambda store, _: store.engine.inspector.jobs(Filter(), limit=20),
    "prune": lambda store, _: store.engine.jobs.prune(Retention(), 100),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
async def test_its_cost_does_not_grow_with_the_backlog(store: Store, act: Act):
    ids = await backlog(store, 100)
    small = await cost(store, act, ids)

    more = await backlog(store, 4_000)
    large = await cost(store, act, more)

    assert large <= small + 15


async def test_a_script_looks_at_a_bounded_number_of_jobs(store: Store):
    ids = await backlog(store, 3_000)
    batch = store.engine.capabilities.max_batch
    for _ in range(5):
        taken = await claim(store.engine, batch)
        await store.engine.jobs.settle([completed(one) for one in taken])
    store.clock.advance(ms=10**9)

    async def check(act: Awaitable[object], most: int) -> None:
        before = commands(store)
        await act
        after = commands(store)
        scripts = after[1] - before[1]
        assert (after[0] - before[0]) / scripts <= most

    await check(store.engine.inspector.jobs(Filter(tenants=("nobody",)), limit=20), 350)
    await check(store.engine.inspector.jobs(Filter(statuses=("paused",)), limit=20), 600)
    await check(store.engine.jobs.hold(ids[:batch], **BY), 400)
    await check(store.engine.jobs.cancel(ids[:batch], **BY), 450)
    await check(store.engine.jobs.prune(Retention(), 500), 1_300)
