"""Does a tick of the coordinator cost more when more schedules are at rest?

Two stores that differ in this alone take turns. In each, ten schedules fire every second; the
others are due between a day and a year from now. A tick is one look of the coordinator that finds
those ten, plans them and writes their jobs; an idle tick finds nothing. What counts is the CPU of
the coordinator and of the store's server. Then a coordinator in a process of its own, with all its
services, works on the larger store for a while and tells how much memory it had at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.engines import Store, fresh_store
from benchmarks.errors import BenchmarkError
from benchmarks.figures import paired_ratio, rounded
from benchmarks.fleet import opened
from benchmarks.jobs import Program
from benchmarks.parts.schedules_put import Stopwatch, made
from benchmarks.report import Line
from benchmarks.scale import Bench
from lamplighter.config import Settings
from lamplighter.coordinator import Firer

RATIO = 1.5
"""How much more a tick may cost among very many."""
MEMORY_MB = 200
"""What a coordinator may have in memory."""
DUE = 10
"""Schedules that one tick fires."""

_ROOT = Path(__file__).resolve().parent.parent.parent
_IDLE_TICKS = 20
_KINDS = 1_440
_BATCH = 10_000
_DAY_MS = 24 * 3_600_000
_YEAR_MS = 365 * _DAY_MS
_AFTER_THE_SECOND = 0.05


async def rest(bench: Bench) -> dict[str, object]:
    """Fill the two stores, take the ticks in turn, then look at a coordinator's memory."""
    scale = bench.scale
    async with contextlib.AsyncExitStack() as stack:
        lanes = [
            await stack.enter_async_context(_lane(bench, count))
            for count in (scale.schedules_few, scale.schedules_many)
        ]
        rounds = await _rounds(lanes, scale.schedules_ticks)
        megabytes = await _memory_mb(lanes[-1].store, scale.schedules_seconds)
    return told(rounds) | {
        "schedules": [scale.schedules_few, scale.schedules_many],
        "ticks": scale.schedules_ticks,
        "coordinator_mb": rounded(megabytes),
    }


@dataclass(frozen=True, slots=True)
class Ticks:
    """What ticks cost, in microseconds: one that fires, and one that finds nothing."""

    busy: float
    idle: float


@dataclass(frozen=True, slots=True)
class Lane:
    """A store with schedules at rest, and its coordinator."""

    store: Store
    firer: Firer

    async def tick(self) -> Ticks | None:
        """Fire what is due in this second, then look some times in vain; None: it was over."""
        watch = Stopwatch(self.store)
        fired, _ = await self.firer.fire_batch()
        busy = sum(watch.cpu_us())
        watch = Stopwatch(self.store)
        found = [(await self.firer.fire_batch())[0] for _ in range(_IDLE_TICKS)]
        idle = sum(watch.cpu_us()) / _IDLE_TICKS
        return Ticks(busy, idle) if fired == DUE and not any(found) else None


async def _rounds(lanes: Sequence[Lane], wanted: int) -> list[list[Ticks]]:
    """Give so many rounds of all lanes; one that took more than its second does not count."""
    rounds: list[list[Ticks]] = []
    for number in range(2 * wanted + 1):
        await _next_second()
        order = lanes if number % 2 else lanes[::-1]
        found = [await lane.tick() for lane in order]
        whole = [ticks for ticks in found if ticks is not None]
        if number and len(whole) == len(lanes):  # the first finds nothing in the caches
            rounds.append(whole if number % 2 else whole[::-1])
        if len(rounds) == wanted:
            return rounds
    raise BenchmarkError(
        f"of {2 * wanted} rounds only {len(rounds)} found {DUE} schedules due in one second: "
        "this machine is too busy"
    )


@contextlib.asynccontextmanager
async def _lane(bench: Bench, count: int) -> AsyncGenerator[Lane]:
    with fresh_store(bench.engine, bench.folder) as store:
        async with opened(store) as program:
            await _fill(program, count)
            schedules = program.app.schedules
            await schedules.put_many(
                schedules.make(
                    f"every second/{number}",
                    timedelta(seconds=1),
                    program.note.call(number),
                    # Nobody runs the jobs: each of them is the active run for ever.
                    overlap="allow",
                )
                for number in range(DUE)
            )
            store.rest()
            yield Lane(store, Firer(await program.app.engine(), Settings()))


async def _fill(program: Program, count: int) -> None:
    """Put schedules at rest, due at instants that have nothing to do with their names."""
    kinds = made(program, min(count, _KINDS), "kind")
    chance = random.Random(count)
    soonest = int(time.time() * 1000) + _DAY_MS
    for start in range(0, count, _BATCH):
        await program.app.schedules.put_many(
            replace(
                kinds[number % len(kinds)],
                id=f"tenant-{number}/daily",
                tenant=f"tenant-{number}",
                due_ms=soonest + chance.randrange(_YEAR_MS),
            )
            for number in range(start, min(start + _BATCH, count))
        )


async def _next_second() -> None:
    """Wait until those that fire each second are due."""
    now = time.time()
    await asyncio.sleep(1 - now % 1 + _AFTER_THE_SECOND)


async def _memory_mb(store: Store, seconds: float) -> float:
    """Let a coordinator of its own work on a store, and give the most that it had in memory."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("LAMPLIGHTER_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.parts.schedules_node",
        str(seconds),
        cwd=_ROOT,
        env={**inherited, "LAMPLIGHTER_URL": store.url},
        stdout=subprocess.PIPE,
    )
    try:
        shown, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise BenchmarkError(f"the coordinator ended with status {process.returncode}")
    fired, kib = map(int, shown.split())
    if not fired:
        raise BenchmarkError(f"the coordinator has fired nothing within {seconds:g} s")
    return kib * 1024 / 1e6


def told(rounds: Sequence[Sequence[Ticks]]) -> dict[str, object]:
    """Compare the ticks on the two stores, few schedules first, by the medians of neighbours."""
    few, many = zip(*rounds, strict=True)
    found: dict[str, object] = {}
    for name, small, large in (
        ("tick", [one.busy for one in few], [one.busy for one in many]),
        ("idle", [one.idle for one in few], [one.idle for one in many]),
    ):
        found[f"{name}_ratio"] = rounded(paired_ratio(large, small))
        found[f"{name}_us"] = [rounded(median(small)), rounded(median(large))]
    return found


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    (few, many), mb = part["schedules"], part["coordinator_mb"]
    (_, tick), (_, idle) = part["tick_us"], part["idle_us"]
    ratios = part["tick_ratio"], part["idle_ratio"]
    title = f"tick that fires {DUE} among {many:,} schedules / {few:,} ({tick:,.0f} µs)"
    return [
        Line(title, f"{ratios[0]:.3g} ×", ratios[0], RATIO),
        Line(f"  idle tick ({idle:,.0f} µs)", f"{ratios[1]:.3g} ×", ratios[1], RATIO),
        Line("  memory of a coordinator", f"{mb:.4g} MB", mb, MEMORY_MB, " MB"),
    ]
