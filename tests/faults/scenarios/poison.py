"""Jobs that harm their process run among good ones: each pays for what it did, nobody else does."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import poison
from tests.faults.checker import GOOD, Budget, Rules
from tests.faults.driver import Process, wait_until
from tests.faults.history import Run
from tests.faults.places import SQLITE, Ground
from tests.faults.poison import JOB, KINDS, TIMEOUT
from tests.faults.processes import marked
from tests.faults.rules import FOLDER
from tests.faults.scenarios.stage import Stage, Verdict

RULES = Rules(max_attempts=dict.fromkeys(poison.app.registry.names(), poison.ATTEMPTS))
HARD_AFTER = 1.0
GRACE = 6.0
CAPACITY_BACK = 2.0
SWEEP = 2.0
"""Seconds after the end of all jobs within which nothing is left that they have started."""
NEIGHBOURS = ("calm", "quiet", "lone")
SLOTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large a run is."""

    lease: float = 3.0
    seconds: float = 60.0
    """Rounds are begun for so long; at least one is played."""
    kinds: Sequence[str] = tuple(KINDS)
    good: int = 30
    """Good jobs of a round."""
    hanging: Sequence[str] = ("hang", "swallow", "stall")
    """Kinds for which it is measured how long they keep others from running."""
    back: float = CAPACITY_BACK
    """Seconds after a hard end within which another job has started, beside those that a new
    child takes to come up."""
    patience: float = 90.0
    """Seconds in which a round must have come to its end."""


def run(folder: Path, seed: str, plan: Plan, *, ground: Ground = SQLITE) -> Verdict:
    stage = Stage("poison", folder, ground)
    notes = _Notes()
    try:
        if plan.kinds:
            _harm(stage, plan, random.Random(f"{seed}-poison"), notes)
        notes.capacities = [_capacity(stage, plan, kind) for kind in plan.hanging]
    finally:
        stage.end()
    verdict = stage.verdict(RULES)
    verdict.figures.append(f"{notes.rounds} rounds of {len(plan.kinds)} kinds of harm")
    if notes.code != 0:
        verdict.blame("end", f"the worker ended with {notes.code}")
    for one in notes.strays:
        verdict.blame("orphans", f"the job that started the process {one} has ended long ago")
    if notes.capacities:
        _judge(verdict, stage, notes.capacities, plan.back)
    return verdict


def run_harm(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Play a few kinds of harm, once."""
    kinds = ("segfault", "parting", "daemon", "swallow")
    plan = Plan(lease=lease, seconds=0, kinds=kinds, good=12, hanging=(), patience=40)
    return run(folder, "small", plan, ground=ground)


def run_capacity(
    folder: Path,
    lease: float,
    *,
    ground: Ground = SQLITE,
    hanging: tuple[str, ...] = ("hang", "stall"),
) -> Verdict:
    """Only see to it that those that hang do not keep others from running for long."""
    # Half of it again, because others may use the machine as well.
    back = CAPACITY_BACK * 1.5
    plan = Plan(lease=lease, kinds=(), hanging=hanging, back=back, patience=40)
    return run(folder, "small", plan, ground=ground)


@dataclass(slots=True)
class _Notes:
    """What was seen while the processes still ran."""

    rounds: int = 0
    code: int | None = 0
    strays: list[str] = field(default_factory=list)
    capacities: list[_Capacity] = field(default_factory=list)


def _harm(stage: Stage, plan: Plan, dice: random.Random, notes: _Notes) -> None:
    worker = _start(stage, plan, children=2, slots=8, process_slots=6)
    end = time.monotonic() + plan.seconds
    while not notes.rounds or time.monotonic() < end:
        _round(stage, plan, dice)
        notes.strays += _strays(stage)
        notes.rounds += 1
    stage.driver.drain_workers()
    notes.code = worker.popen.returncode


def _start(stage: Stage, plan: Plan, **settings: float) -> Process:
    driver = stage.driver
    worker = driver.start_worker(
        plan.lease, program="poison", hard_after=HARD_AFTER, grace=GRACE, **settings
    )
    wait_until(lambda: driver.ready(worker), 20, "the worker")
    return worker


def _round(stage: Stage, plan: Plan, dice: random.Random) -> None:
    """Submit harmful and good jobs in any order, and wait until all of them have ended."""
    jobs: list[tuple[str, Budget, dict[str, int]]] = [
        (f"{name} {isolation}", budget, {})
        for name in plan.kinds
        for isolation, budget in KINDS[name].budgets.items()
    ]
    jobs += [
        (dice.choice(NEIGHBOURS), GOOD, {"ms": dice.randint(10, 1500)}) for _ in range(plan.good)
    ]
    dice.shuffle(jobs)
    stage.submit_all(jobs)
    stage.wait_for_the_end_of_all_jobs(plan.patience)


def _strays(stage: Stage) -> list[str]:
    """Give processes that were started by jobs which have ended, if they do not end soon."""
    deadline = time.monotonic() + SWEEP
    while True:
        mine = set(marked(f"{FOLDER}={stage.folder}"))
        found = [f"{one.pid} ({one.command()})" for one in marked(f"{JOB}=") if one in mine]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


# ── capacity ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Capacity:
    kind: str
    hanging: list[str]
    neighbour: str
    lasting: list[str]
    """One that runs beside them for longer than its grace, and so goes down with its process."""
    witness: str


def _capacity(stage: Stage, plan: Plan, kind: str) -> _Capacity:
    """Fill a worker with jobs that hang and one that does not, and wait for another to start."""
    driver = stage.driver
    _start(stage, plan, children=1, slots=SLOTS, process_slots=1)
    # Longer than what hangs: while it runs, its process cannot be replaced by killing it.
    beyond = TIMEOUT + HARD_AFTER + (1 if kind == "stall" else CAPACITY_BACK * 1.5 + 1)
    (neighbour,) = stage.submit("quiet", budget=GOOD, ms=int(beyond * 1000))
    wait_until(lambda: bool(stage.started([neighbour])), 20, "the job that does not hang")
    lasting: list[str] = []
    if kind != "stall":
        # It is killed with those that hang, and is to run again as if nothing had been.
        ms = int((TIMEOUT + HARD_AFTER + GRACE + 4) * 1000)
        lasting = stage.submit("quiet", budget=GOOD, ms=ms)
        wait_until(lambda: bool(stage.started(lasting)), 20, "the job that lasts")
    # A loop that stands still starts no second one.
    count = 1 if kind == "stall" else SLOTS - 2
    hanging = stage.submit(f"{kind} shared", count, budget=KINDS[kind].budgets["shared"])
    wait_until(lambda: stage.started(hanging) == set(hanging), 20, "the jobs that hang")
    (witness,) = stage.submit("calm", budget=GOOD)
    stage.wait_for_the_end_of_all_jobs(plan.patience)
    driver.drain_workers()
    return _Capacity(kind, hanging, neighbour, lasting, witness)


def _judge(verdict: Verdict, stage: Stage, capacities: Sequence[_Capacity], allowed: float) -> None:
    runs: dict[str, list[Run]] = {}
    told = stage.history()
    for run in told.runs:
        runs.setdefault(run.job_id, []).append(run)
    worst = 0.0
    for one in capacities:
        first = min(runs[job_id][0].started for job_id in one.hanging)
        hard_end = first + TIMEOUT + HARD_AFTER
        starting = stage.spent_starting(one.witness, hard_end)
        seconds = runs[one.witness][0].started - hard_end - starting
        worst = max(worst, seconds)
        text = f"{seconds:.2f} s after the hard end, and {starting:.2f} s for a child to come up"
        verdict.figures.append(f"{one.kind}: another job ran {text}")
        if seconds > allowed:
            verdict.blame("capacity", f"{one.kind}: another job ran only {text}", one.witness)
        # In a loop that stands still nobody can tell who holds it up.
        for beside in (one.neighbour, *one.lasting):
            if told.endings[beside].suspect and one.kind != "stall":
                text = f"runs beside {one.kind}, and is suspected of something"
                verdict.blame("neighbours", text, beside)
        if one.kind != "stall" and len(runs[one.neighbour]) != 1:
            text = f"ran {len(runs[one.neighbour])} times beside {one.kind}, within its grace"
            verdict.blame("neighbours", text, one.neighbour)
    verdict.found.setdefault("capacity", [])
    verdict.figures.append(f"capacity back at most {worst:.2f} s after a hard end")
