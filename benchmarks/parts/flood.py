"""A handler that prints without end: what it costs its process, and the jobs beside it.

Once in a thread of a child, once in a process of its own. The worker has one child here, so that
the others cannot avoid the one that prints.
"""

from __future__ import annotations

import asyncio
import random
import time

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import percentile, rounded
from benchmarks.fleet import Fleet, fleet
from benchmarks.gauges import Gauges, Start
from benchmarks.jobs import FLOOD_BEGINS, FLOOD_ENDS, LINE, flood_line
from benchmarks.parts.latency import start_ms
from benchmarks.rss import Growth
from benchmarks.scale import Bench
from lamplighter.job import Job
from lamplighter.model.journal import LOG_LIMIT, Piece, lines_of

_LOST_AFTER = 20.0
_OVER_WITHIN = 300.0
_WARM_LINES = 10


async def flood(bench: Bench) -> dict[str, object]:
    """Print the same in both places, and run small jobs meanwhile."""
    mib = bench.scale.flood_mib
    lines = mib * (1 << 20) // LINE
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store, children=1, extra=["flood", "flood-alone"]) as workers:
            await workers.hold(held=False)
            await _some_ms(workers, 20)
            quiet = await _some_ms(workers, bench.scale.flood_quiet_jobs)
            program = workers.program
            return {
                "mib": mib,
                "beside": await _Flood(workers, program.flood).measured(lines, quiet),
                "alone": await _Flood(workers, program.flood_alone).measured(lines, quiet),
            }


class _Flood:
    def __init__(self, workers: Fleet, job: Job[[int], None]) -> None:
        self._workers = workers
        self._job = job
        # Its own view: the one of the workers is used by the jobs beside it.
        self._marks = Gauges(workers.gauges.folder)
        self._marks.new_starts()

    async def measured(self, lines: int, quiet: list[float]) -> dict[str, object]:
        """Run one flood, and give all that is told about it."""
        # So that the process it will run in is there and has imported everything.
        await self._job.submit(_WARM_LINES)
        await self._mark(FLOOD_ENDS)
        await self._workers.settled(everything=True)
        child = self._workers.gauges.pids()[0]
        grown = {pid: Growth(pid) for pid in {child, *self._workers.gauges.slot_pids()}}
        handle = await self._job.submit(lines)
        began = await self._mark(FLOOD_BEGINS)
        ended, others = await self._until_ended(grown[began.pid])
        await self._workers.settled(everything=True)
        for growth in grown.values():
            growth.look()
        engine = await self._workers.program.app.engine()
        rows = await engine.inspector.logs(handle.id, limit=1_000)
        found = summary([row.piece for row in rows], lines)
        found |= {
            "seconds": rounded((ended.monotonic_ns - began.monotonic_ns) / 1e9),
            "child_mib": rounded(grown[child].mib),
            "quiet_p99_ms": rounded(percentile(quiet, 99)),
            "p99_ms": rounded(percentile(others, 99)),
            "p99_ratio": rounded(percentile(others, 99) / percentile(quiet, 99)),
            "jobs": len(others),
        }
        return found if began.pid == child else found | {"slot_mib": rounded(grown[began.pid].mib)}

    async def _until_ended(self, growth: Growth) -> tuple[Start, list[float]]:
        """Run small jobs until the flood is over; at least one."""
        others: list[float] = []
        deadline = time.monotonic() + _OVER_WITHIN
        while time.monotonic() < deadline:
            others += await _some_ms(self._workers, 1, first=len(others))
            growth.look()
            for start in self._marks.new_starts():
                if start.number == FLOOD_ENDS:
                    return start, others
        raise BenchmarkError(f"a flood was not over within {_OVER_WITHIN:g} s")

    async def _mark(self, number: int) -> Start:
        deadline = time.monotonic() + _LOST_AFTER
        while time.monotonic() < deadline:
            for start in self._marks.new_starts():
                if start.number == number:
                    return start
            await asyncio.sleep(0.001)
        raise BenchmarkError(f"a flood did not start or end within {_LOST_AFTER:g} s")


async def _some_ms(workers: Fleet, jobs: int, first: int = 0) -> list[float]:
    found: list[float] = []
    for number in range(first, first + jobs):
        # Never in step with the worker.
        await asyncio.sleep(random.uniform(0.003, 0.008))
        found.append(await start_ms(workers, number))
    return found


def summary(pieces: list[Piece], printed: int) -> dict[str, object]:
    """Look at a flood's log: its beginning and its end must be there, and not too much of it."""
    size, kept = sum(len(piece.data) for piece in pieces), lines_of(pieces)
    if size > LOG_LIMIT:
        raise BenchmarkError(f"{size:,} bytes of a log were kept, the limit is {LOG_LIMIT:,}")
    for place, number in ((0, 0), (-1, printed - 1)):
        if not kept or kept[place].text != flood_line(number):
            raise BenchmarkError(f"line {number:,} of {printed:,} is missing from a log")
    return {"log_kib": rounded(size / 1024), "log_lines": len(kept)}
