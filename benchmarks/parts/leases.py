"""What it costs a Redis server to keep very many leases alive, at the pace of real workers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.engines import fresh_redis
from benchmarks.errors import BenchmarkError
from benchmarks.figures import rounded
from benchmarks.fleet import QUEUE, fill, opened
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.lifecycle import milliseconds
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest, Renewal
from lamplighter.worker.run import BATCH, LONGEST_ROUND

SHARE = 0.25
"""Part of one core that the server may use for it."""

_LEASE_MS = milliseconds(Settings().lease)


async def leases(bench: Bench) -> dict[str, object]:
    """Claim jobs and renew them in rounds, as a worker does with those that run for a while."""
    scale = bench.scale
    with fresh_redis(bench.folder) as store:
        async with opened(store) as program:
            await fill(program, scale.leases)
            engine = await program.app.engine()
            batch = min(BATCH, engine.capabilities.max_batch)
            workers = [await _claimed(engine, batch) for _ in range(0, scale.leases, batch)]
            if (held := sum(map(len, workers))) != scale.leases:
                raise BenchmarkError(f"{held} jobs of {scale.leases} were handed out")
            # Each begins at a moment of its own, within the first round; that does not count.
            began = time.monotonic() + LONGEST_ROUND
            end = began + scale.lease_seconds
            keeping = [asyncio.create_task(_keep(engine, held, end)) for held in workers]
            await asyncio.sleep(began - time.monotonic())
            before = store.server_cpu_ns()
            store.command("CONFIG RESETSTAT")
            await asyncio.sleep(end - time.monotonic())
            seconds, spent = time.monotonic() - began, store.server_cpu_ns() - before
            calls = store.info("commandstats")["cmdstat_evalsha"]["calls"]
            await asyncio.gather(*keeping)
    return {
        "leases": scale.leases,
        "core_share": rounded(spent / 1e9 / seconds),
        "renewals_per_s": rounded(calls * batch / seconds),
        "wanted_per_s": rounded(scale.leases / LONGEST_ROUND),
    }


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    share = part["core_share"] * 100
    return [
        Line(
            f"{part['leases']:,} live leases cost the server",
            f"{share:.3g} % of a core",
            share,
            SHARE * 100,
            " %",
        ),
        Line("  renewals", f"{part['renewals_per_s']:,.0f} /s of {part['wanted_per_s']:,.0f} /s"),
    ]


async def _claimed(engine: Engine, batch: int) -> list[Renewal]:
    """Give the leases of a worker that took as many jobs as it can at once."""
    request = ClaimRequest(
        nonce=runtime.nonce(),
        worker=runtime.incarnation(),
        queues=((QUEUE, batch),),
        types=("count",),
        limit=batch,
        lease_ms=_LEASE_MS,
    )
    answer = await engine.jobs.claim(request)
    return [Renewal(claim.job.id, claim.fence) for claim in answer.claims]


async def _keep(engine: Engine, held: Sequence[Renewal], end: float) -> None:
    """Renew all of them in every round; see `worker.keeper`."""
    due = time.monotonic() + random.uniform(0, LONGEST_ROUND)
    while due < end:
        await asyncio.sleep(due - time.monotonic())
        answers = await engine.jobs.renew(held, _LEASE_MS)
        if not all(answer.held for answer in answers):
            raise BenchmarkError("a lease was lost in the middle of a measurement")
        due += LONGEST_ROUND
