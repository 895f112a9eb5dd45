"""Many jobs that fall due at one instant while urgent ones keep coming: who has to wait?

The urgent jobs are of the same queue and type, so that all that goes before the others is their
level. They are submitted at a steady pace, whether or not the last one has been answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.fleet import Fleet, fleet
from benchmarks.gauges import Start
from benchmarks.parts.delayed import summary
from benchmarks.parts.due import in_time, submit_all
from benchmarks.report import BUDGETS, Line
from benchmarks.scale import Bench

FIRST_MS = 100
"""How late the first of them may start, if the engine promises no more."""
URGENT_MS = 100
"""How long 99 of 100 urgent jobs may take to start meanwhile."""

_PER_SECOND = 50
_LEAD = 1.0


async def burst(bench: Bench) -> dict[str, object]:
    """Submit all well before they are due, then the urgent ones until all have run."""
    scale = bench.scale
    return await in_time(scale.burst_jobs, scale.burst_ahead, lambda ahead: _once(bench, ahead))


async def _once(bench: Bench, ahead: float) -> dict[str, object] | None:
    """Measure with this delay; None: submitting took longer, so nothing was measured."""
    jobs = bench.scale.burst_jobs
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store) as workers:
            first = workers.gauges.total()
            await workers.hold(held=False)
            due_ms = int((time.time() + ahead) * 1000)
            margin = await submit_all(workers, jobs, due_ms)
            if margin < _LEAD:
                return None
            await asyncio.sleep(margin - _LEAD)
            urgent = Urgent(workers, jobs)
            async with asyncio.TaskGroup() as tasks:
                coming = tasks.create_task(urgent.keep_coming(tasks))
                await asyncio.sleep(due_ms / 1000 - time.time())
                await workers.ran(first + jobs)
                coming.cancel()
            await workers.ran(first + jobs + len(urgent.called))
            await workers.settled(everything=True)
            starts = workers.gauges.new_starts()
    most = BUDGETS[bench.engine].first_ms or FIRST_MS
    found = told(starts, urgent.called, jobs, due_ms)
    return found | {"margin_s": rounded(margin), "first_most_ms": most}


class Urgent:
    """Jobs that go before all others; their numbers follow on those of the others."""

    def __init__(self, workers: Fleet, first: int) -> None:
        self.called: dict[int, int] = {}
        """When the submission of each was called, in nanoseconds of the monotonic clock."""
        self._job = workers.program.note.options(priority="critical")
        self._first = first

    async def keep_coming(self, tasks: asyncio.TaskGroup) -> None:
        """Submit at a steady pace, until cancelled."""
        began = time.monotonic()
        while True:
            number = self._first + len(self.called)
            self.called[number] = time.monotonic_ns()
            tasks.create_task(self._submit(number))
            await asyncio.sleep(began + len(self.called) / _PER_SECOND - time.monotonic())

    async def _submit(self, number: int) -> None:
        await self._job.submit(number)


def told(
    starts: list[Start], called: Mapping[int, int], jobs: int, due_ms: int
) -> dict[str, object]:
    """Compare each start with the due time, and those of the urgent jobs with their calls."""
    found = summary([start for start in starts if start.number < jobs], jobs, due_ms)
    last_ns = max(start.wall_ns for start in starts if start.number < jobs)
    urgent = {start.number: start for start in starts if start.number >= jobs}
    if urgent.keys() != called.keys() or len(urgent) + jobs != len(starts):
        raise BenchmarkError(f"{len(called)} urgent jobs were submitted, {len(urgent)} started")
    waits = {number: start.monotonic_ns - called[number] for number, start in urgent.items()}
    meanwhile = [
        waits[number] / 1e6
        for number, start in urgent.items()
        if due_ms * 1_000_000 <= start.wall_ns - waits[number] <= last_ns
    ]
    if not meanwhile:
        raise BenchmarkError(f"no urgent job came while {jobs} others ran: take more of them")
    return found | {
        "last_ms": rounded(last_ns / 1e6 - due_ms),
        "urgent": len(meanwhile),
        "urgent_p50_ms": rounded(percentile(meanwhile, 50)),
        "urgent_p99_ms": rounded(percentile(meanwhile, 99)),
        "urgent_max_ms": rounded(max(meanwhile)),
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    first, urgent = part["first_ms"], part["urgent_p99_ms"]
    most = part.get("first_most_ms", FIRST_MS)
    title = f"{part['jobs']:,} jobs due at once, urgent ones coming, early"
    return [
        Line(title, f"{part['early']}", part["early"], 0),
        Line("  first late by", f"{first:.4g} ms", first, most, " ms"),
        Line("  last late by", f"{part['last_ms']:,.0f} ms"),
        Line(f"  {part['urgent']:,} urgent ones meanwhile, p50", f"{part['urgent_p50_ms']:.4g} ms"),
        Line("  p99", f"{urgent:.4g} ms", urgent, URGENT_MS, " ms"),
    ]
