"""The processes of a peer: `python -m benchmarks.peers.side PEER facts|prepare|work|produce [URL]`.

A producer does what the lines of its input say, one at a time, and answers each with a line of
JSON; so that everything is connected and warm before anything is measured.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import importlib
import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import cast

from benchmarks.gauges import Gauge, Gauges
from benchmarks.peers.adapter import BATCH, Adapter, Foreign, Producer
from benchmarks.peers.roster import ROSTER

GAUGES = "BENCHMARK_GAUGES"
"""Names the folder of the gauges to the processes of a peer."""

_LOST_AFTER = 20.0


def main(arguments: list[str]) -> None:
    """Be one of the processes."""
    peer, role, *rest = arguments
    if peer not in ROSTER:
        raise SystemExit(f"error: `{peer}` is unknown; hint: name one of {', '.join(ROSTER)}")
    module = importlib.import_module(f"benchmarks.peers.with_{peer}")
    adapter = cast("Adapter", module)
    if role == "facts":
        print(json.dumps(dataclasses.asdict(adapter.FACTS)))
    elif ROSTER[peer].node:
        # It has nothing to do with Python: its program takes the place of this one.
        command = cast("Foreign", module).command(role, *rest)
        os.execvp(command[0], command)
    elif role == "prepare":
        adapter.run(adapter.prepare(rest[0]))
    elif role == "work":
        adapter.run(_work(adapter, rest[0]))
    else:
        adapter.run(_produce(adapter, rest[0]))


async def _work(adapter: Adapter, url: str) -> None:
    gauge = Gauge(Path(os.environ[GAUGES]))

    def ran(number: int) -> None:
        if number >= 0:
            gauge.note_start(number)
        gauge.count[0] += 1

    threading.Thread(target=_end_with_driver, daemon=True).start()
    await adapter.work(url, ran)


def _end_with_driver() -> None:
    """The driver never writes: the line ends when it does, however that happens."""
    # Not by `sys.stdin`, whose lock would then be held in every process that is forked from here.
    while os.read(0, 1):
        pass
    if os.getpgrp() == os.getpid():
        # With the processes that a peer has started for itself.
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


async def _produce(adapter: Adapter, url: str) -> None:
    loop = asyncio.get_running_loop()
    async with adapter.producer(url) as producer:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            wish, count, due = line.split()
            gc.collect()
            cpu, began = time.process_time_ns(), time.monotonic()
            samples = await _WISHES[wish](producer, int(count), float(due))
            seconds = time.monotonic() - began
            spent = time.process_time_ns() - cpu
            print(json.dumps({"seconds": seconds, "cpu_ns": spent, "samples": samples}), flush=True)


async def _bulk(producer: Producer, jobs: int, _due: float) -> list[float]:
    for start in range(0, jobs, BATCH):
        await producer.submit_bulk(min(BATCH, jobs - start))
    return []


async def _single(producer: Producer, jobs: int, _due: float) -> list[float]:
    for _ in range(jobs):
        await producer.submit_single()
    return []


async def _later(producer: Producer, jobs: int, due: float) -> list[float]:
    for start in range(0, jobs, BATCH):
        await producer.submit_due(range(start, min(start + BATCH, jobs)), due)
    return []


async def _latency(producer: Producer, jobs: int, _due: float) -> list[float]:
    """From the call to the first instruction of the handler, an idle worker each time."""
    gauges = Gauges(Path(os.environ[GAUGES]))
    gauges.new_starts()
    found: list[float] = []
    for number in range(jobs):
        # As for ours: long enough to go to sleep, and never in step.
        await asyncio.sleep(random.uniform(0.005, 0.014))
        called = time.monotonic_ns()
        await producer.submit_single(number)
        found.append((await _started(gauges, number) - called) / 1e6)
    return found


async def _started(gauges: Gauges, number: int) -> int:
    deadline = time.monotonic() + _LOST_AFTER
    while time.monotonic() < deadline:
        for start in gauges.new_starts():
            if start.number == number:
                return start.monotonic_ns
        await asyncio.sleep(0.001)
    raise SystemExit(f"error: job {number} did not start within {_LOST_AFTER:g} s")


_WISHES = {"bulk": _bulk, "single": _single, "latency": _latency, "due": _later}


if __name__ == "__main__":
    main(sys.argv[1:])
