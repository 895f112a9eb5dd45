"""Many jobs that fall due at one instant: none may start early, and how late is late?"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.fleet import Fleet, fleet
from benchmarks.gauges import Start
from benchmarks.scale import Bench

_BATCH = 5_000


async def delayed(bench: Bench) -> dict[str, object]:
    """Submit all well before they are due, then compare each start with the due time."""
    ahead = bench.scale.delayed_ahead
    for seconds in (ahead, 4 * ahead):
        found = await _once(bench, seconds)
        if found is not None:
            return found
    raise BenchmarkError(f"submitting {bench.scale.delayed_jobs} jobs took over {4 * ahead:g} s")


async def _once(bench: Bench, ahead: float) -> dict[str, object] | None:
    """Measure with this delay; None: submitting took longer, so nothing was measured."""
    jobs = bench.scale.delayed_jobs
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store) as workers:
            first = workers.gauges.total()
            await workers.hold(held=False)
            due_ms = int((time.time() + ahead) * 1000)
            await _submit(workers, jobs, due_ms)
            margin = due_ms / 1000 - time.time()
            if margin <= 0:
                return None
            await asyncio.sleep(margin)
            await workers.ran(first + jobs)
            await workers.settled(everything=True)
            starts = workers.gauges.new_starts()
    return summary(starts, jobs, due_ms) | {"margin_s": rounded(margin)}


async def _submit(workers: Fleet, jobs: int, due_ms: int) -> None:
    due = datetime.fromtimestamp(due_ms / 1000, tz=UTC)
    call = workers.program.note.options(run_at=due).call
    for start in range(0, jobs, _BATCH):
        numbers = range(start, min(start + _BATCH, jobs))
        await workers.program.app.submit_many([call(number) for number in numbers])


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
        "jobs": jobs,
    }
