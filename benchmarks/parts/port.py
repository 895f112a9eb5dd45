"""Claiming and settling through the port: what a job costs the engine, without a worker."""

from __future__ import annotations

from benchmarks.engines import Store, fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost, typical
from benchmarks.fleet import fill, opened
from benchmarks.jobs import Program
from benchmarks.parts.submit import Phase
from benchmarks.scale import Bench
from lamplighter import runtime
from lamplighter.model import lifecycle
from lamplighter.model.job import Claim
from lamplighter.model.outcome import Succeeded
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest

BATCH = 100
_LEASE_MS = 600_000


async def claim(bench: Bench) -> dict[str, object]:
    """Take all jobs, a hundred at a time, as a worker asks for them."""
    return typical([costs[0] for costs in await _rounds(bench)])


async def settle(bench: Bench) -> dict[str, object]:
    """Write their success, a hundred at a time."""
    return typical([costs[1] for costs in await _rounds(bench)])


async def _rounds(bench: Bench) -> list[tuple[Cost, Cost]]:
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            await _round(store, program, BATCH)  # warm up
            return [
                await _round(store, program, bench.scale.port_jobs)
                for _ in range(bench.scale.port_rounds)
            ]


async def _round(store: Store, program: Program, jobs: int) -> tuple[Cost, Cost]:
    await fill(program, jobs)
    store.rest()
    engine = await program.app.engine()
    phase = Phase(store, "caller")
    claims = [claim for _ in range(0, jobs, BATCH) for claim in await _claim(engine)]
    claimed = phase.end(jobs)
    if len(claims) != jobs:
        raise BenchmarkError(f"{len(claims)} of {jobs} jobs could be claimed")
    phase = Phase(store, "caller")
    for start in range(0, jobs, BATCH):
        some = claims[start : start + BATCH]
        await engine.jobs.settle([lifecycle.settle(claim, Succeeded()) for claim in some])
    return claimed, phase.end(jobs)


async def _claim(engine: Engine) -> list[Claim]:
    request = ClaimRequest(
        nonce=runtime.nonce(),
        worker="bench",
        queues=(("default", BATCH),),
        types=("count",),
        limit=BATCH,
        lease_ms=_LEASE_MS,
    )
    return (await engine.jobs.claim(request)).claims
