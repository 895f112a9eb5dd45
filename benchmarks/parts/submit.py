"""Submitting through the public client: by the thousand, and one by one."""

from __future__ import annotations

import gc
import time

from benchmarks.engines import Store, fresh_store
from benchmarks.figures import Cost, typical
from benchmarks.fleet import opened
from benchmarks.jobs import PAYLOAD, Program
from benchmarks.scale import Bench

BATCH = 1_000


async def bulk(bench: Bench) -> dict[str, object]:
    """Batches of 1,000; making and checking the calls is part of it."""
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            await _bulk(store, program, BATCH)  # warm up
            costs = [
                await _bulk(store, program, bench.scale.bulk_jobs)
                for _ in range(bench.scale.bulk_rounds)
            ]
    return typical(costs)


async def single(bench: Bench) -> dict[str, object]:
    """Each call waits until its job is safe before the next is made."""
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            await _single(store, program, 50)  # warm up
            cost = await _single(store, program, bench.scale.single_jobs)
    return typical([cost])


async def _bulk(store: Store, program: Program, jobs: int) -> Cost:
    phase = Phase(store)
    call, submit_many = program.count.call, program.app.submit_many
    for _ in range(0, jobs, BATCH):
        await submit_many([call(PAYLOAD) for _ in range(BATCH)])
    return phase.end(jobs)


async def _single(store: Store, program: Program, jobs: int) -> Cost:
    phase = Phase(store)
    submit = program.count.submit
    for _ in range(jobs):
        await submit(PAYLOAD)
    return phase.end(jobs)


class Phase:
    """The cost of what is done until its end, of this process by its role and of the store."""

    def __init__(self, store: Store, role: str = "producer") -> None:
        gc.collect()
        self._store, self._role = store, role
        self._server = store.server_cpu_ns()
        self._cpu = time.process_time_ns()
        self._began = time.monotonic()

    def end(self, jobs: int) -> Cost:
        """Return what it has cost."""
        seconds = time.monotonic() - self._began
        own = time.process_time_ns() - self._cpu
        server = self._store.server_cpu_ns() - self._server
        return Cost(jobs, seconds, {self._role: own, "store": server})
