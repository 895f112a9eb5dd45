"""What a waiting job takes in the store."""

from __future__ import annotations

from benchmarks.engines import fresh_store
from benchmarks.figures import rounded
from benchmarks.fleet import fill, opened
from benchmarks.scale import Bench

TENANTS = 100
"""Whose jobs they are."""


async def memory(bench: Bench) -> dict[str, object]:
    """The store's growth by many jobs, divided by their number; an empty store is not counted."""
    jobs = bench.scale.memory_jobs
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            # What there is once, for each tenant or for all, is no part of a job.
            await fill(program, TENANTS, tenants=TENANTS)
        empty = store.bytes_used()
        async with opened(store) as program:
            await fill(program, jobs, tenants=TENANTS)
        full = store.bytes_used()
    return {"bytes_per_job": rounded((full - empty) / jobs), "jobs": jobs, "tenants": TENANTS}
