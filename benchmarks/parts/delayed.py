"""Many jobs that fall due at one instant: none may start early, and how late is late?"""

from __future__ import annotations

import asyncio
import time

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.fleet import fleet
from benchmarks.gauges import Start
from benchmarks.parts.due import in_time, submit_all
from benchmarks.scale import Bench


async def delayed(bench: Bench) -> dict[str, object]:
    """Submit all well before they are due, then compare each start with the due time."""
    scale = bench.scale
    return await in_time(scale.delayed_jobs, scale.delayed_ahead, lambda ahead: _once(bench, ahead))


async def _once(bench: Bench, ahead: float) -> dict[str, object] | None:
    """Measure with this delay; None: submitting took longer, so nothing was measured."""
    jobs = bench.scale.delayed_jobs
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store) as workers:
            first = workers.gauges.total()
            await workers.hold(held=False)
            due_ms = int((time.time() + ahead) * 1000)
            margin = await submit_all(workers, jobs, due_ms)
            if margin <= 0:
                return None
            await asyncio.sleep(margin)
            await workers.ran(first + jobs)
            await workers.settled(everything=True)
            starts = workers.gauges.new_starts()
    return summary(starts, jobs, due_ms) | {"margin_s": rounded(margin)}


def summary(starts: list[Start], jobs: int, due_ms: int) -> dict[str, object]:
    """Compare each start with the due time; every job must have started exactly once."""
    if sorted(start.number for start in starts) != list(range(jobs)):
        raise BenchmarkError(f"{jobs} jobs were due, {len(starts)} handlers started")
    late = [start.wall_ns / 1e6 - due_ms for start in starts]
    return {
        "early": sum(ms < 0 for ms in late),
        "first_ms": rounded(min(late)),
        "p50_ms": rounded(percentile(late, 50)),
        "p99_ms": rounded(percentile(late, 99)),
        "last_ms": rounded(max(late)),
        "jobs": jobs,
    }
