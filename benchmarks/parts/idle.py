"""What very many idle workers cost a Redis server, and how many of them one job wakes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.engines import RedisStore, fresh_redis
from benchmarks.errors import BenchmarkError
from benchmarks.figures import rounded
from benchmarks.fleet import opened
from benchmarks.jobs import PAYLOAD, Program
from benchmarks.report import Line
from benchmarks.scale import Bench

SHARE = 0.10
"""Part of one core that the server may use for them."""
WOKEN = 4
"""How many of them one submission may wake."""

_ROOT = Path(__file__).resolve().parent.parent.parent
_PROCESSES = 4
_SETTLE_SECONDS = 3.0
_RAN_WITHIN = 10.0
_STRAYS_SECONDS = 0.2


async def idle(bench: Bench) -> dict[str, object]:
    """Let them sleep, and look what the server does meanwhile; then submit jobs one at a time."""
    scale = bench.scale
    with fresh_redis(bench.folder) as store:
        async with opened(store) as program:
            with _asleep(store, scale.idle_workers) as dormitory:
                await asyncio.sleep(_SETTLE_SECONDS)
                store.command("CONFIG RESETSTAT")
                before, began = store.server_cpu_ns(), time.monotonic()
                await asyncio.sleep(scale.idle_seconds)
                seconds = time.monotonic() - began
                spent, calls = store.server_cpu_ns() - before, _calls(store)
                woken = [await _wake_by_one(program, dormitory) for _ in range(scale.idle_submits)]
    return told(woken) | {
        "workers": scale.idle_workers,
        "core_share": rounded(spent / 1e9 / seconds),
        "scripts_per_s": rounded(calls / seconds),
    }


def told(woken: Sequence[int]) -> dict[str, object]:
    """Tell of the most that one submission has woken, and of the usual number."""
    return {"woken_most": max(woken), "woken_p50": rounded(median(woken)), "submits": len(woken)}


def lines(part: Mapping[str, Any]) -> list[Line]:
    """Give what is shown of it."""
    share, most = part["core_share"] * 100, part["woken_most"]
    return [
        Line(
            f"{part['workers']:,} idle workers cost the server",
            f"{share:.3g} % of a core",
            share,
            SHARE * 100,
            " %",
        ),
        Line("  their scripts", f"{part['scripts_per_s']:,.0f} /s"),
        Line(f"  woken by one submit, most of {part['submits']}", f"{most}", most, WOKEN),
    ]


async def _wake_by_one(program: Program, dormitory: Dormitory) -> int:
    """Submit one job, wait until it has run, and count who was woken."""
    dormitory.woken()
    handle = await program.count.submit(PAYLOAD)
    engine = await program.app.engine()
    deadline = time.monotonic() + _RAN_WITHIN
    while True:
        row = await engine.inspector.job(handle.id)
        if row is not None and row.state == "succeeded":
            break
        if time.monotonic() > deadline:
            raise BenchmarkError(f"no idle worker ran a job within {_RAN_WITHIN:g} s")
        await asyncio.sleep(0.01)
    await asyncio.sleep(_STRAYS_SECONDS)
    return dormitory.woken()


class Dormitory:
    """The processes of the sleepers."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def ready(self) -> None:
        """Wait until all are asleep."""
        for process in self._processes:
            if _line(process) != "ready":
                raise BenchmarkError("a process of idle workers did not start")

    def woken(self) -> int:
        """Count those that were woken since the last question."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.write("woken\n")
                process.stdin.flush()
        return sum(int(_line(process)) for process in self._processes)


@contextlib.contextmanager
def _asleep(store: RedisStore, workers: int) -> Generator[Dormitory]:
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(_started(store.url, workers // _PROCESSES))
            for _ in range(_PROCESSES)
        ]
        dormitory = Dormitory(processes)
        dormitory.ready()
        yield dormitory


@contextlib.contextmanager
def _started(url: str, workers: int) -> Generator[subprocess.Popen[str]]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("LAMPLIGHTER_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.sleepers", str(workers)],
        cwd=_ROOT,
        env={**inherited, "LAMPLIGHTER_URL": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    line = "" if process.stdout is None else process.stdout.readline()
    if not line:
        raise BenchmarkError("a process of idle workers has ended")
    return line.strip()


def _calls(store: RedisStore) -> int:
    return store.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
