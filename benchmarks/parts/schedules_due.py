"""Very many schedules that are due at one instant: how long until each has its job?

Each is of a tenant of its own. A worker fires them and runs what they make, while critical jobs of
the same queue and type keep coming at a steady pace, whether or not the last one was answered. When
the last schedule was fired stands in the store: it is when the last of the jobs was created.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost, percentile, rounded
from benchmarks.fleet import Fleet, fleet
from benchmarks.gauges import Start
from benchmarks.parts.burst import Urgent
from benchmarks.parts.delayed import summary
from benchmarks.parts.due import in_time
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter.model.filters import Filter
from lamplighter.port.schedules import NewSchedule

FIRED_S = {"sqlite": 15.0, "postgres": 10.0, "redis": 10.0}
"""Seconds until all of them have a job."""
FIRED_AIM_S = 5.0
CRITICAL_MS = 200
"""How long 99 of 100 critical jobs may take to start meanwhile."""

_LEAD = 1.0
_PAGE = 500


async def due(bench: Bench) -> dict[str, object]:
    """Put all well before they are due, then wait until the job of each has run."""
    scale = bench.scale
    count, ahead = scale.schedules_due, scale.schedules_ahead
    return await in_time(count, ahead, lambda seconds: _once(bench, seconds))


async def _once(bench: Bench, ahead: float) -> dict[str, object] | None:
    """Measure with this delay; None: putting took longer, so nothing was measured."""
    count = bench.scale.schedules_due
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store) as workers:
            first = workers.gauges.total()
            await workers.hold(held=False)
            instant = math.ceil(time.time() + ahead)
            await workers.program.app.schedules.put_many(made(workers, count, instant))
            margin = instant - time.time()
            if margin < _LEAD:
                return None
            store.rest()
            await asyncio.sleep(instant - _LEAD - time.time())
            critical = Urgent(workers, count)
            async with asyncio.TaskGroup() as tasks:
                coming = tasks.create_task(critical.keep_coming(tasks))
                await asyncio.sleep(instant - time.time())
                before = workers.cpu()
                await workers.ran(first + count)
                coming.cancel()
            total = count + len(critical.called)
            await workers.ran(first + total)
            await workers.settled(everything=True)
            seconds, after = time.time() - instant, workers.cpu()
            created = await _created(workers)
            starts = workers.gauges.new_starts()
    spent = {role: ns - before[role] for role, ns in after.items()}
    found = told(starts, critical.called, created, count, instant * 1000)
    return (
        found
        | costs(Cost(total, seconds, spent))
        | {
            "margin_s": rounded(margin),
            "most_s": FIRED_S[bench.engine],
        }
    )


def made(workers: Fleet, count: int, instant: int) -> list[NewSchedule]:
    """Make schedules that fire at this second, each day."""
    at = datetime.fromtimestamp(instant, tz=UTC)
    program, calendar = workers.program, f"{at.second} {at.minute} {at.hour} * * *"
    return [
        program.app.schedules.make(
            f"tenant-{number}/daily",
            calendar,
            program.note.options(tenant=f"tenant-{number}").call(number),
        )
        for number in range(count)
    ]


async def _created(workers: Fleet) -> list[int]:
    """Ask the store when it got the job of each schedule."""
    engine = await workers.program.app.engine()
    found: list[int] = []
    cursor: str | None = None
    while True:
        page = await engine.inspector.jobs(Filter(), limit=_PAGE, cursor=cursor)
        found += [one.job.created_at_ms for one in page.jobs if one.job.schedule is not None]
        cursor = page.cursor
        if cursor is None:
            return found


def told(
    starts: Sequence[Start],
    called: Mapping[int, int],
    created: Sequence[int],
    count: int,
    due_ms: int,
) -> dict[str, object]:
    """Compare jobs and starts with the instant, and those of the critical jobs with their calls.

    A critical job counts if it was called before the last schedule had been fired, however long it
    had to wait.
    """
    if len(created) != count:
        raise BenchmarkError(f"{count} schedules were due, {len(created)} jobs are in the store")
    found = summary([start for start in starts if start.number < count], count, due_ms)
    critical = {start.number: start for start in starts if start.number >= count}
    if critical.keys() != called.keys() or len(critical) + count != len(starts):
        raise BenchmarkError(f"{len(called)} critical jobs were submitted, {len(critical)} started")
    fired_ms = max(created)
    waits = {number: start.monotonic_ns - called[number] for number, start in critical.items()}
    meanwhile = [
        waits[number] / 1e6
        for number, start in critical.items()
        if due_ms * 1_000_000 <= start.wall_ns - waits[number] <= fired_ms * 1_000_000
    ]
    if not meanwhile:
        raise BenchmarkError(f"no critical job came while {count} schedules were fired: take more")
    return {
        "schedules": count,
        "early": found["early"],
        "fired_s": rounded((fired_ms - due_ms) / 1000),
        "fired_p50_s": rounded((percentile(created, 50) - due_ms) / 1000),
        "ran_s": rounded(float(str(found["last_ms"])) / 1000),
        "critical": len(meanwhile),
        "critical_p50_ms": rounded(percentile(meanwhile, 50)),
        "critical_p99_ms": rounded(percentile(meanwhile, 99)),
        "critical_max_ms": rounded(max(meanwhile)),
    }


def costs(cost: Cost) -> dict[str, object]:
    """Give what it cost to fire one and to run its job."""
    return {
        "cpu_us": rounded(cost.cpu_us()),
        "cpu_us_by_role": {role: rounded(us) for role, us in cost.split().items()},
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    fired, p99, most = part["fired_s"], part["critical_p99_ms"], part["most_s"]
    title = f"{part['schedules']:,} schedules due at once, jobs started early"
    return [
        Line(title, f"{part['early']}", part["early"], 0),
        Line("  all fired within", f"{fired:.3g} s", fired, most, " s", FIRED_AIM_S),
        Line("  the last job started after", f"{part['ran_s']:.3g} s"),
        Line("  CPU per schedule, its job included", f"{part['cpu_us']:.4g} µs"),
        Line(
            f"  {part['critical']:,} critical jobs meanwhile, p50",
            f"{part['critical_p50_ms']:.4g} ms",
        ),
        Line("  p99", f"{p99:.4g} ms", p99, CRITICAL_MS, " ms"),
    ]
