"""A worker is told to end twice while jobs run: it hurries, and still gives back what it has."""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from tests.faults.checker import GOOD, Budget
from tests.faults.driver import Process, wait_until
from tests.faults.places import SQLITE, Ground
from tests.faults.scenarios.poison import RULES
from tests.faults.scenarios.stage import Stage, Verdict

GRACE = 20.0
SHORT_GRACE = 1.0
MARGIN = 4.0
"""Seconds beyond the short grace: handlers unwind, processes that do not are killed, all is
written."""
DISTANCES = ((0.0, 0.1), (0.1, 5.0))


@dataclass(frozen=True, slots=True)
class _Drain:
    code: int
    distance: float
    seconds: float
    """From the first signal to the end of the worker."""
    hurried: float
    """From the second one, if it came before the end."""


def run(
    folder: Path,
    lease: float,
    seed: str,
    *,
    rounds: int = 8,
    longest: float = 6.0,
    ground: Ground = SQLITE,
) -> Verdict:
    """Play some rounds on one store, with jobs of up to ``longest`` seconds."""
    stage = Stage("double sigterm", folder, ground)
    dice = random.Random(f"{seed}-sigterm")
    drains: list[_Drain] = []
    left: list[int] = []
    try:
        for number in range(rounds):
            worker = _begin(stage, lease, dice, int(longest * 1000))
            distance = dice.uniform(*DISTANCES[number % len(DISTANCES)])
            # A service manager may tell every process of a service, not only the first.
            everybody = dice.random() < 0.3
            drains.append(_end(stage, worker, distance, everybody=everybody))
            left.append(len(stage.auditor.running_under("")))
        stage.driver.start_worker(lease, program="poison", children=2, slots=10, process_slots=4)
        stage.wait_for_the_end_of_all_jobs(longest * rounds + 40)
        stage.driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict(RULES)
    _judge(verdict, drains, left)
    return verdict


def _begin(stage: Stage, lease: float, dice: random.Random, longest_ms: int) -> Process:
    """Start a worker, and give it more than it can finish."""
    driver = stage.driver
    worker = driver.start_worker(
        lease,
        program="poison",
        children=2,
        slots=4,
        process_slots=2,
        grace=GRACE,
        short_grace=SHORT_GRACE,
    )
    wait_until(lambda: driver.ready(worker), 20, "the worker")
    calls: list[tuple[str, Budget | None, dict[str, int]]] = [
        (type, GOOD, {"ms": dice.randint(200, longest_ms)})
        for type in ("calm", "quiet", "lone")
        for _ in range(4)
    ]
    dice.shuffle(calls)
    stage.submit_all(calls)
    name = driver.worker_of(worker) or ""
    wait_until(lambda: len(stage.auditor.running_under(name)) >= 4, 20, "jobs running")
    time.sleep(dice.uniform(0.0, 1.0))
    return worker


def _end(stage: Stage, worker: Process, distance: float, *, everybody: bool) -> _Drain:
    first = _tell(stage, worker, everybody=everybody)
    while worker.alive() and time.monotonic() < first + distance:
        time.sleep(min(0.005, distance))
    second = _tell(stage, worker, everybody=everybody) if worker.alive() else time.monotonic()
    wait_until(lambda: not worker.alive(), GRACE + 10, "the end of the worker")
    now = time.monotonic()
    return _Drain(worker.popen.returncode, distance, now - first, now - second)


def _tell(stage: Stage, worker: Process, *, everybody: bool) -> float:
    victims = [worker.found, *(stage.driver.tree(worker) if everybody else ())]
    for one in victims:
        if one.alive():
            os.kill(one.pid, signal.SIGTERM)
    return time.monotonic()


def _judge(verdict: Verdict, drains: list[_Drain], left: list[int]) -> None:
    verdict.found.setdefault("drain", [])
    for drain, running in zip(drains, left, strict=True):
        told = f"after signals {drain.distance:.3f} s apart"
        if drain.code != 0:
            verdict.blame("drain", f"the worker ended with {drain.code} {told}")
        if drain.hurried > SHORT_GRACE + MARGIN:
            verdict.blame("drain", f"it took {drain.hurried:.2f} s more {told}")
        if running:
            verdict.blame("drain", f"{running} jobs were not given back {told}")
    seconds = [drain.hurried for drain in drains]
    verdict.figures.append(
        f"{len(drains)} drains, from the second signal on: {min(seconds):.2f} s at least, "
        f"{statistics.median(seconds):.2f} s in the middle, {max(seconds):.2f} s at most"
    )
