"""Does a job cost more when more are waiting, or when they belong to more tenants?

Stores that differ in this alone take turns, a slice of the work each, so that all of them see
the same moods of the machine. Only the worker and the store count: what the driver does to find
the end of a slice is not part of a job.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence
from statistics import median

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost, paired_ratio, rounded
from benchmarks.fleet import DRIVER, Fleet, fleet
from benchmarks.scale import Bench


async def growth(bench: Bench) -> dict[str, object]:
    """CPU of a job behind a thousand and behind a million; each slice is filled up before it."""
    scale = bench.scale
    sizes = (scale.growth_small, scale.growth_large)
    async with _fleets(bench, len(sizes)) as lanes:
        for lane, size in zip(lanes, sizes, strict=True):
            await lane.submit(size)
        costs: list[list[float]] = [[] for _ in lanes]
        for number in range(scale.growth_rounds + 1):
            for index in _order(len(lanes), number):
                await lanes[index].submit(scale.growth_slice)
                cost = await lanes[index].drain(scale.growth_slice, everything=False)
                if number:  # the first slice after a fill finds nothing in the caches
                    costs[index].append(_cost(cost))
                # Put back what ran beyond the slice.
                await lanes[index].submit(cost.jobs - scale.growth_slice)
    return {
        "drain_ratio": rounded(paired_ratio(costs[1], costs[0])),
        "sizes": list(sizes),
        "cpu_us": [rounded(median(found)) for found in costs],
        "rounds": scale.growth_rounds,
    }


async def tenants(bench: Bench) -> dict[str, object]:
    """CPU of a job of one, a thousand and very many tenants; every store is drained empty."""
    scale = bench.scale
    async with _fleets(bench, len(scale.tenants)) as lanes:
        for lane, count in zip(lanes, scale.tenants, strict=True):
            await lane.submit(scale.tenant_jobs, tenants=count)
        left = [scale.tenant_jobs] * len(lanes)
        costs: list[list[float]] = [[] for _ in lanes]
        for number in range(scale.tenant_rounds):
            is_last = number == scale.tenant_rounds - 1
            for index in _order(len(lanes), number):
                # What ran beyond an earlier slice is missing from the later ones.
                wanted = left[index] // (scale.tenant_rounds - number)
                if wanted < 1:
                    raise BenchmarkError("too few jobs for so many slices")
                cost = await lanes[index].drain(wanted, everything=is_last)
                left[index] -= cost.jobs
                costs[index].append(_cost(cost))
    one, some, many = costs
    return {
        "drain_ratio": rounded(paired_ratio(many, some)),
        "ratio_to_one": rounded(paired_ratio(many, one)),
        "tenants": list(scale.tenants),
        "cpu_us": [rounded(median(found)) for found in costs],
        "jobs": scale.tenant_jobs,
        "rounds": scale.tenant_rounds,
    }


@contextlib.asynccontextmanager
async def _fleets(bench: Bench, count: int) -> AsyncGenerator[list[Fleet]]:
    async with contextlib.AsyncExitStack() as stack:
        lanes: list[Fleet] = []
        for _ in range(count):
            store = stack.enter_context(fresh_store(bench.engine, bench.folder))
            lanes.append(await stack.enter_async_context(fleet(store)))
        yield lanes


def _order(count: int, number: int) -> Sequence[int]:
    """Forwards and backwards in turn, so that nobody always comes first."""
    return range(count) if number % 2 else range(count - 1, -1, -1)


def _cost(cost: Cost) -> float:
    return cost.cpu_us(without=DRIVER)
