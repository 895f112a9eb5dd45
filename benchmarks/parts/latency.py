"""From the call of submit to the first instruction of the handler, on an idle worker.

Between two jobs the disk's own speed is taken: an append of 4 KiB with fdatasync. A job cannot
start before its submission is on disk, so that is what the latency has to be compared with.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.fleet import Fleet, fleet
from benchmarks.report import BUDGETS
from benchmarks.scale import Bench

_BLOCK = bytes(4096)
_LOST_AFTER = 10.0


async def latency(bench: Bench) -> dict[str, object]:
    """Give the best run of as many as the engine's budget stands for."""
    runs = [await _once(bench) for _ in range(BUDGETS[bench.engine].latency_runs)]
    best = min(runs, key=lambda run: run["p99_ms"])
    if len(runs) == 1:
        return {**best}
    return {**best, "runs": [[run["p50_ms"], run["p99_ms"]] for run in runs]}


async def _once(bench: Bench) -> dict[str, float]:
    """One job at a time, at irregular intervals; the first few are not counted."""
    with fresh_store(bench.engine, bench.folder) as store:
        descriptor = os.open(store.folder / "fsync", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            async with fleet(store) as workers:
                await workers.hold(held=False)
                await _one_by_one(workers, 20, lambda: None)
                syncs: list[float] = []
                found = await _one_by_one(
                    workers, bench.scale.latency_jobs, lambda: syncs.append(_sync(descriptor))
                )
        finally:
            os.close(descriptor)
    return {
        "p50_ms": rounded(percentile(found, 50)),
        "p95_ms": rounded(percentile(found, 95)),
        "p99_ms": rounded(percentile(found, 99)),
        "max_ms": rounded(max(found)),
        "jobs": len(found),
        "fsync_p50_ms": rounded(percentile(syncs, 50)),
        "fsync_p99_ms": rounded(percentile(syncs, 99)),
    }


async def _one_by_one(workers: Fleet, jobs: int, between: Callable[[], None]) -> list[float]:
    found: list[float] = []
    for number in range(jobs):
        # Long enough for the worker to have settled and gone to sleep; never in step with it.
        await asyncio.sleep(random.uniform(0.004, 0.010))
        between()
        await asyncio.sleep(random.uniform(0.001, 0.004))
        found.append(await start_ms(workers, number))
    return found


async def start_ms(workers: Fleet, number: int) -> float:
    """Submit one job and tell how long it took to start."""
    called = time.monotonic_ns()
    await workers.program.note.submit(number)
    return (await _started(workers, number) - called) / 1e6


async def _started(workers: Fleet, number: int) -> int:
    deadline = time.monotonic() + _LOST_AFTER
    while time.monotonic() < deadline:
        for start in workers.gauges.new_starts():
            if start.number == number:
                return start.monotonic_ns
        await asyncio.sleep(0.001)
    raise BenchmarkError(f"job {number} did not start within {_LOST_AFTER:g} s")


def _sync(descriptor: int) -> float:
    began = time.monotonic_ns()
    os.write(descriptor, _BLOCK)
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(descriptor)
    return (time.monotonic_ns() - began) / 1e6
