"""Does a job cost more when its store is divided into shards? All on one Redis server each."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from statistics import median
from typing import Any

from benchmarks.engines import fresh_redis
from benchmarks.figures import paired_ratio, rounded
from benchmarks.fleet import DRIVER, Fleet, fleet
from benchmarks.report import Line
from benchmarks.scale import Bench

SHARDS = (1, 3, 6)
RATIO = 1.25
"""How much more a job may cost than in one shard."""


async def shards(bench: Bench) -> dict[str, object]:
    """CPU of a job; the stores take turns, forwards and backwards, each drained empty."""
    scale = bench.scale
    async with _fleets(bench) as lanes:
        costs: list[list[float]] = [[] for _ in lanes]
        for number in range(scale.shard_rounds + 1):
            order = range(len(lanes)) if number % 2 else range(len(lanes) - 1, -1, -1)
            for index in order:
                await lanes[index].submit(scale.shard_jobs)
                cost = await lanes[index].drain(scale.shard_jobs, everything=True)
                if number:  # the first round warms up
                    costs[index].append(cost.cpu_us(without=DRIVER))
    return {
        "shards": list(SHARDS),
        "ratios": [rounded(paired_ratio(found, costs[0])) for found in costs],
        "cpu_us": [rounded(median(found)) for found in costs],
        "jobs": scale.shard_jobs,
        "rounds": scale.shard_rounds,
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    found = zip(part["shards"], part["ratios"], part["cpu_us"], strict=True)
    (one, _, us), *others = found
    return [
        Line(f"drain with {one} shard", f"{us:.4g} µs"),
        *(
            Line(f"  with {count} shards / 1 ({us:.4g} µs)", f"{ratio:.3g} ×", ratio, RATIO)
            for count, ratio, us in others
        ),
    ]


@contextlib.asynccontextmanager
async def _fleets(bench: Bench) -> AsyncGenerator[list[Fleet]]:
    async with contextlib.AsyncExitStack() as stack:
        lanes: list[Fleet] = []
        for count in SHARDS:
            store = stack.enter_context(fresh_redis(bench.folder, shards=str(count)))
            lanes.append(await stack.enter_async_context(fleet(store)))
        yield lanes
