"""Lamplighter in the arena, measured by the same parts as everywhere else."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

from benchmarks.figures import Cost
from benchmarks.fleet import Fleet, fleet, opened
from benchmarks.jobs import PAYLOAD, Program
from benchmarks.parts.latency import start_ms
from benchmarks.parts.submit import BATCH
from benchmarks.peers.arena import Arena, Database
from benchmarks.peers.facts import Facts

FACTS = Facts(
    name="Lamplighter",
    version=version("lamplighter"),
    settings=f"psycopg {version('psycopg')}, 2 children and their supervisor with the "
    "coordinator's services, all defaults",
    promises={
        "delivery": "at least once, or at most once by type; failures are retried with growing "
        "delays, then kept as dead letters",
        "lost worker": "lease per job, 30 s; the jobs of a dead child are handed out at once",
        "late finish": "refused: every claim has a fence, a number and a random nonce",
        "commits": "submit and settle durable; a claim need not be, the fence makes a forgotten "
        "one harmless",
        "history": "the job with its arguments, result and last attempt; a row for each failure",
        "fairness": "tenants take turns by weight in each queue and level; nobody waits for ever",
        "job's end": "moved to the finished jobs with its result",
    },
    waiting="",
)


class Ours:
    """The same four measurements as for a peer."""

    facts = FACTS

    def __init__(self, arena: Arena) -> None:
        self._arena = arena

    def submit_bulk(self, jobs: int) -> Cost:
        """By 1,000."""
        return asyncio.run(self._submit(jobs, bulk=True))

    def submit_single(self, jobs: int) -> Cost:
        """One at a time, each safe before the next."""
        return asyncio.run(self._submit(jobs, bulk=False))

    def drain(self, jobs: int) -> Cost:
        """With two children, to the last settle."""
        return asyncio.run(self._drain(jobs))

    def latency(self, jobs: int) -> list[float]:
        """Milliseconds from the call to the first instruction of the handler."""
        return asyncio.run(self._latency(jobs))

    async def _submit(self, jobs: int, *, bulk: bool) -> Cost:
        phase = _by_the_thousand if bulk else _one_by_one
        with self._arena.database() as database:
            async with opened(database) as program:
                await phase(program, BATCH if bulk else 50)
                database.rest()
                return await _measured(database, program, jobs, phase)

    async def _drain(self, jobs: int) -> Cost:
        with self._arena.database() as database:
            async with fleet(database) as workers:
                await workers.submit(jobs)
                return await workers.drain(jobs, everything=True)

    async def _latency(self, jobs: int) -> list[float]:
        with self._arena.database() as database:
            async with fleet(database) as workers:
                await workers.hold(held=False)
                await _starts(workers, 20)
                return await _starts(workers, jobs)


async def _measured(
    database: Database,
    program: Program,
    jobs: int,
    phase: Callable[[Program, int], Awaitable[None]],
) -> Cost:
    gc.collect()
    server, own, began = database.server_cpu_ns(), time.process_time_ns(), time.monotonic()
    await phase(program, jobs)
    seconds, spent = time.monotonic() - began, time.process_time_ns() - own
    return Cost(jobs, seconds, {"producer": spent, "store": database.server_cpu_ns() - server})


async def _by_the_thousand(program: Program, jobs: int) -> None:
    for start in range(0, jobs, BATCH):
        calls = [program.count.call(PAYLOAD) for _ in range(min(BATCH, jobs - start))]
        await program.app.submit_many(calls)


async def _one_by_one(program: Program, jobs: int) -> None:
    for _ in range(jobs):
        await program.count.submit(PAYLOAD)


async def _starts(workers: Fleet, jobs: int) -> list[float]:
    found: list[float] = []
    for number in range(jobs):
        # As for the peers: long enough to go to sleep, and never in step.
        await asyncio.sleep(random.uniform(0.005, 0.014))
        found.append(await start_ms(workers, number))
    return found
