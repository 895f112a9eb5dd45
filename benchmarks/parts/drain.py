"""Running no-op jobs that were submitted beforehand, by a worker with two children."""

from __future__ import annotations

from benchmarks.engines import fresh_store
from benchmarks.figures import Cost, rounded, typical
from benchmarks.fleet import fleet
from benchmarks.scale import Bench


async def drain(bench: Bench) -> dict[str, object]:
    """From the first claim to the last settle; each round must run exactly its jobs."""
    scale = bench.scale
    costs: list[Cost] = []
    loops: list[float] = []
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store) as workers:
            for _ in range(scale.drain_rounds):
                await workers.submit(scale.drain_jobs)
                before = workers.loops_ns()
                costs.append(await workers.drain(scale.drain_jobs, everything=True))
                after = workers.loops_ns()
                if before is not None and after is not None:
                    loops.append((after - before) / 1000 / scale.drain_jobs)
    found = typical(costs)
    if loops:
        found["cpu_us_children_loops"] = rounded(sorted(loops)[len(loops) // 2])
    return found
