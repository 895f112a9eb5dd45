"""One job in twenty kills its process: the good ones of the same type go on nearly as before."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

from tests.faults.checker import GOOD
from tests.faults.driver import wait_until
from tests.faults.history import read_lines
from tests.faults.places import SQLITE, Ground
from tests.faults.poison import CRASHES
from tests.faults.scenarios.poison import RULES
from tests.faults.scenarios.stage import Stage, Verdict

KILLERS = ("segfault", "abort", "exit", "kill")
SLOTS = 20
ONE_IN = 20
JOBS = 1140
"""A minute of them, so that what has to be learnt is part of it and not most of it."""


MOST_DEATHS = 5
"""Shared processes that may die until jobs of that type run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long it takes."""

    lease: float = 10.0
    jobs: int = JOBS
    """Good jobs of each run, twenty at a time."""
    ms: int = 1000
    """How long each of them takes."""
    share: float | None = 0.8
    """Of the throughput without poison that is left with it; None: not measured."""


def run(folder: Path, seed: str, plan: Plan, *, ground: Ground = SQLITE) -> Verdict:
    harmed, verdict = _measure(folder / "poisoned", seed, plan, ground, poisonous=True)
    verdict.figures.append(f"{harmed:.1f} good jobs a second with one killer in {ONE_IN}")
    deaths = [
        line
        for line in read_lines(folder / "poisoned" / "history.jsonl")
        if line["kind"] == "event" and line["name"] == "child.died"
    ]
    verdict.figures.append(f"{len(deaths)} children died of them until they ran alone")
    verdict.found.setdefault("throughput", [])
    if len(deaths) > MOST_DEATHS:
        verdict.blame("throughput", f"{len(deaths)} children died before anything was learnt")
    if plan.share is not None:
        clean, _ = _measure(folder / "clean", seed, plan, ground, poisonous=False)
        share = harmed / clean
        verdict.figures.append(f"{clean:.1f} without them, so {share:.0%} are left")
        if share < plan.share:
            verdict.blame("throughput", f"{share:.0%} are left, not {plan.share:.0%}")
    return verdict


def _measure(
    folder: Path, seed: str, plan: Plan, ground: Ground, *, poisonous: bool
) -> tuple[float, Verdict]:
    """Give good jobs per second, from the submission until the last of them has ended."""
    stage = Stage("poison throughput", folder, ground)
    driver = stage.driver
    try:
        worker = driver.start_worker(
            plan.lease, program="poison", children=1, slots=SLOTS, process_slots=SLOTS
        )
        wait_until(lambda: driver.ready(worker), 20, "the worker")
        begun = time.monotonic()
        good = _submit(stage, seed, plan, poisonous=poisonous)
        patience = plan.jobs / SLOTS * plan.ms / 1000 * 4 + 60
        wait_until(lambda: stage.auditor.ended(good) == len(good), patience, "the good jobs")
        seconds = time.monotonic() - begun
        stage.wait_for_the_end_of_all_jobs(patience)
        driver.drain_workers()
    finally:
        stage.end()
    return len(good) / seconds, stage.verdict(RULES)


def _submit(stage: Stage, seed: str, plan: Plan, *, poisonous: bool) -> list[str]:
    """Submit good jobs, and killers at random places among them; gives the good ones."""
    dice = random.Random(f"{seed}-throughput")
    jobs = [""] * plan.jobs
    if poisonous:
        killers = plan.jobs // (ONE_IN - 1)
        jobs += [KILLERS[number % len(KILLERS)] for number in range(killers)]
        dice.shuffle(jobs)
    calls = [("mixed", CRASHES if one else GOOD, {"ms": plan.ms, "poison": one}) for one in jobs]
    ids = stage.submit_all(calls)
    return [job_id for job_id, one in zip(ids, jobs, strict=True) if not one]
