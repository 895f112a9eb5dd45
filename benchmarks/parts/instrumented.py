"""What counting costs: the same jobs drained by a worker that counts, and by one that does not.

Each has a store of its own. The worker that counts is scraped all the while, once a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Mapping
from statistics import median
from typing import Any

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import paired_ratio, rounded
from benchmarks.fleet import DRIVER, Fleet, fleet
from benchmarks.jobs import METRICS_PORT
from benchmarks.report import Line
from benchmarks.scale import Bench

MOST = 1.1
"""How much more a job may cost with metrics than without."""
_EVERY = 1.0


async def instrumented(bench: Bench) -> dict[str, object]:
    """CPU of a job; the two take turns, and neighbours are compared."""
    scale = bench.scale
    port = _free_port()
    async with (
        _fleet(bench, {"LAMPLIGHTER_METRICS": "0"}) as plain,
        _fleet(bench, {METRICS_PORT: str(port)}) as counting,
    ):
        costs: dict[Fleet, list[float]] = {plain: [], counting: []}
        for number in range(scale.instrumented_pairs + 1):
            for each in (plain, counting) if number % 2 else (counting, plain):
                await each.submit(scale.instrumented_jobs)
                scraped = port if each is counting else None
                cost = await _drained(each, scale.instrumented_jobs, scraped)
                if number:  # the first round warms up
                    costs[each].append(cost)
        counted = await _counted(port)
    expected = (scale.instrumented_pairs + 1) * scale.instrumented_jobs
    if counted < expected:
        raise BenchmarkError(f"{expected} jobs ran, but {counted} were counted")
    return {
        "ratio": rounded(paired_ratio(costs[counting], costs[plain])),
        "cpu_us": rounded(median(costs[counting])),
        "cpu_us_without": rounded(median(costs[plain])),
        "jobs": scale.instrumented_jobs,
        "pairs": scale.instrumented_pairs,
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    title = f"drain with metrics / without ({part['cpu_us']:.4g} µs)"
    return [Line(title, f"{part['ratio']:.3g} ×", part["ratio"], MOST)]


async def _drained(each: Fleet, jobs: int, port: int | None) -> float:
    """Give the CPU of a job, in µs; what is at a port is scraped meanwhile."""
    scraping = None if port is None else asyncio.ensure_future(_scrape_on(port))
    try:
        return (await each.drain(jobs, everything=True)).cpu_us(without=DRIVER)
    finally:
        if scraping is not None:
            scraping.cancel()


async def _scrape_on(port: int) -> None:
    while True:
        await _scrape(port)
        await asyncio.sleep(_EVERY)


async def _scrape(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    # Also when it is cancelled: the end of a drain does not wait for the answer.
    with contextlib.closing(writer):
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        said = (await reader.read()).decode()
    if " 200 " not in said:
        raise BenchmarkError(f"a scrape was answered: {said[:200]}")
    return said


async def _counted(port: int) -> int:
    """Count the successes that the worker tells of; its children report four times a second."""
    await asyncio.sleep(_EVERY)
    return sum(
        int(line.rpartition(" ")[2])
        for line in (await _scrape(port)).splitlines()
        if line.startswith("lamplighter_jobs_ended_total") and 'outcome="succeeded"' in line
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextlib.asynccontextmanager
async def _fleet(bench: Bench, more: Mapping[str, str]) -> AsyncGenerator[Fleet]:
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store, more=more) as made:
            yield made
