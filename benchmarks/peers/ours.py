"""Lamplighter in the arena, measured by the same parts as everywhere else."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost
from benchmarks.fleet import Fleet, fleet, opened
from benchmarks.jobs import PAYLOAD, Program
from benchmarks.parts.delayed import summary
from benchmarks.parts.due import submit_all
from benchmarks.parts.latency import start_ms
from benchmarks.parts.submit import BATCH
from benchmarks.peers.arena import Arena, Database
from benchmarks.peers.facts import Facts

_GONE = 0.3
"""Seconds until a server has noticed that a client is gone."""
_DRIVERS = {"postgres": f"psycopg {version('psycopg')}", "redis": "no driver"}
_COMMITS = {
    "postgres": "submit and settle durable; a claim need not be, the fence makes a forgotten "
    "one harmless",
    "redis": "each in memory at once, on disk within a second or two (durability=everysec)",
}


def facts(store: str) -> Facts:
    """Tell of ours on a store."""
    return Facts(
        name="Lamplighter",
        version=version("lamplighter"),
        settings=f"{_DRIVERS[store]}, 2 children and their supervisor with the coordinator's "
        "services, all defaults",
        promises=_PROMISES | {"commits": _COMMITS[store]},
        waiting="",
    )


_PROMISES = {
    "delivery": "at least once, or at most once by type; failures are retried with growing "
    "delays, then kept as dead letters",
    "lost worker": "lease per job, 30 s; the jobs of a dead child are handed out at once",
    "late finish": "refused: every claim has a fence, a number and a random nonce",
    "commits": "",
    "history": "the job with its arguments, result and last attempt; a row for each failure",
    "fairness": "tenants take turns by weight in each queue and level; nobody waits for ever",
    "job's end": "moved to the finished jobs with its result",
}


class Ours:
    """The same measurements as for a peer."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.facts = facts(arena.store)

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

    def due(self, jobs: int, ahead: float) -> dict[str, object]:
        """Jobs that fall due at one instant, so many seconds from now."""
        return asyncio.run(self._due(jobs, ahead))

    def memory(self, jobs: int) -> float:
        """Bytes that the store grows by with each waiting job."""
        return asyncio.run(self._memory(jobs))

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

    async def _due(self, jobs: int, ahead: float) -> dict[str, object]:
        with self._arena.database() as database:
            async with fleet(database) as workers:
                await workers.hold(held=False)
                first, due_ms = workers.gauges.total(), whole_second(ahead)
                margin = await submit_all(workers, jobs, due_ms)
                if margin <= 0:
                    raise BenchmarkError(f"submitting took {-margin:.1f} s too long")
                await asyncio.sleep(margin)
                await workers.ran(first + jobs)
                return summary(workers.gauges.new_starts(), jobs, due_ms)

    async def _memory(self, jobs: int) -> float:
        with self._arena.database() as database:
            sizes: list[int] = []
            for count in (100, jobs):
                async with opened(database) as program:
                    await _by_the_thousand(program, count)
                await asyncio.sleep(_GONE)
                sizes.append(database.bytes_used())
            return (sizes[1] - sizes[0]) / jobs


def whole_second(ahead: float) -> int:
    """Give an instant that is so far ahead, in milliseconds: some peers know whole seconds only."""
    return int(time.time() + ahead + 1) * 1000


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
