"""Running jobs that were submitted beforehand, by a worker with two children.

No-ops; no-ops in processes of their own; jobs that have something to say; and no-ops that may start
only once.
"""

from __future__ import annotations

from benchmarks.engines import fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost, rounded, typical
from benchmarks.fleet import Fleet, fleet
from benchmarks.jobs import PAYLOAD, SAYING
from benchmarks.scale import Bench
from lamplighter.job import Job
from lamplighter.model.job import Delivery
from lamplighter.model.journal import lines_of


async def drain(bench: Bench) -> dict[str, object]:
    """From the first claim to the last settle; each round must run exactly its jobs."""
    scale = bench.scale
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store) as workers:
            job = workers.program.count
            return await _rounds(workers, job, scale.drain_jobs, scale.drain_rounds)


async def isolated(bench: Bench) -> dict[str, object]:
    """The same with functions that run in processes of their own, which are warm."""
    scale = bench.scale
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store, extra=["count-alone"]) as workers:
            job = workers.program.count_alone
            await workers.warm_up(job)
            found = await _rounds(workers, job, scale.isolated_jobs, scale.isolated_rounds)
            found["processes"] = len(workers.gauges.slot_pids())
    return found


async def said(bench: Bench) -> dict[str, object]:
    """The same with jobs that log a line and report their progress, which must be kept."""
    scale = bench.scale
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store, extra=["say"]) as workers:
            job = workers.program.say
            await workers.warm_up(job)
            found = await _rounds(workers, job, scale.said_jobs, scale.said_rounds)
            await _check_kept(workers)
    return found


async def once(bench: Bench) -> dict[str, object]:
    """The same with at-most-once jobs; they must be such in the store as well."""
    scale = bench.scale
    with fresh_store(bench.engine, bench.folder) as store:
        async with fleet(store, extra=["count-once"]) as workers:
            job = workers.program.count_once
            await workers.warm_up(job)
            found = await _rounds(workers, job, scale.once_jobs, scale.once_rounds)
            await _check_once(workers)
    return found


async def _rounds(
    workers: Fleet, job: Job[[str], None], jobs: int, rounds: int
) -> dict[str, object]:
    costs: list[Cost] = []
    loops: list[float] = []
    for _ in range(rounds):
        await workers.submit(jobs, job=job)
        before = workers.loops_ns()
        costs.append(await workers.drain(jobs, everything=True))
        after = workers.loops_ns()
        if before is not None and after is not None:
            loops.append((after - before) / 1000 / jobs)
    found = typical(costs)
    if loops:
        found["cpu_us_children_loops"] = rounded(sorted(loops)[len(loops) // 2])
    return found


async def _check_kept(workers: Fleet) -> None:
    """Look whether what one more job says is found: a log that is lost costs nothing."""
    (handle,) = await workers.program.app.submit_many([workers.program.say.call(PAYLOAD)])
    await workers.drain(1, everything=True)
    engine = await workers.program.app.engine()
    kept = lines_of(row.piece for row in await engine.inspector.logs(handle.id))
    if [line.text for line in kept] != [SAYING]:
        raise BenchmarkError(f"a job logged one line, and {len(kept)} lines were kept")
    row = await engine.inspector.job(handle.id)
    if row is None or row.progress is None:
        raise BenchmarkError("a job reported its progress, and none was kept")


async def _check_once(workers: Fleet) -> None:
    """Look whether one more job is submitted as at most once: an unmarked start costs nothing."""
    call = workers.program.count_once.call(PAYLOAD)
    (handle,) = await workers.program.app.submit_many([call])
    engine = await workers.program.app.engine()
    row = await engine.inspector.job(handle.id)
    if row is None or row.job.delivery is not Delivery.AT_MOST_ONCE:
        raise BenchmarkError("what was measured are no at-most-once jobs")
    await workers.drain(1, everything=True)
