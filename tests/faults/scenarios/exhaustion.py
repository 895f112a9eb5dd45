"""Process slots, threads or both are used up: other jobs go on, and nobody pays for the wait."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lamplighter.port.store import Engine
from lamplighter.port.values import Why
from tests.faults.checker import GOOD
from tests.faults.driver import Late, Process, wait_until
from tests.faults.places import SQLITE, Ground
from tests.faults.poison import GATE
from tests.faults.scenarios.poison import RULES
from tests.faults.scenarios.stage import Stage, Verdict

SOON = 5.0
"""Seconds in which a job ends that needs nothing of what is used up; a process has to start."""
SENSIBLE = frozenset(
    {
        Why.RUNNING,
        Why.WORKER_SUSPECT,
        Why.WORKER_DEAD,
        Why.BEHIND,
        Why.NO_ROOM,
        Why.NEXT,
        Why.SUSPECT,
        Why.FINISHED,
    }
)
"""What may be said of a job that only waits for its turn."""


@dataclass(slots=True)
class _Notes:
    """What was seen while the processes still ran."""

    slow: list[tuple[str, str]] = field(default_factory=list)
    """Jobs that had to end soon, and did not."""
    odd: list[tuple[str, str]] = field(default_factory=list)
    """Explanations that do not explain."""
    figures: list[str] = field(default_factory=list)
    once: list[str] = field(default_factory=list)
    """Jobs whose lease was kept, so that they ran once."""


def run(folder: Path, lease: float, *, kills: int = 4, ground: Ground = SQLITE) -> Verdict:
    stage = Stage("pool exhaustion", folder, ground)
    notes = _Notes()
    try:
        _processes(stage, notes, lease)
        _threads(stage, notes, lease)
        _suspects(stage, notes, lease, kills)
    finally:
        stage.end()
    verdict = stage.verdict(RULES)
    verdict.figures += notes.figures
    for job_id, text in notes.slow:
        verdict.blame("goes on", text, job_id)
    for job_id, text in notes.odd:
        verdict.blame("explain", text, job_id)
    starts = Counter(run.job_id for run in stage.history().runs)
    for job_id in notes.once:
        if starts[job_id] != 1:
            verdict.blame("once", f"ran {starts[job_id]} times, though nobody died", job_id)
    for name in ("goes on", "explain", "once"):
        verdict.found.setdefault(name, [])
    return verdict


def _processes(stage: Stage, notes: _Notes, lease: float) -> None:
    """More isolated jobs than processes for them; some wait for longer than a lease."""
    worker = _start(stage, lease, children=1, slots=4, process_slots=2)
    ids = stage.submit("lone", 8, budget=GOOD, ms=int(lease * 400))
    wait_until(lambda: len(stage.started(ids)) == 2, 20, "two isolated jobs")
    _soon(stage, notes, "calm", "more isolated jobs than processes")
    _explained(stage, notes, ids[-1], "it waits for a process")
    _finish(stage, worker, lease * 4)
    notes.once += ids


def _threads(stage: Stage, notes: _Notes, lease: float) -> None:
    """Every shared slot is taken by a thread that heeds nothing, for longer than a lease."""
    worker = _start(stage, lease, children=1, slots=2, process_slots=2)
    ids = stage.submit("quiet", 2, budget=GOOD, ms=int(lease * 1500))
    wait_until(lambda: len(stage.started(ids)) == 2, 20, "the threads")
    (waiting,) = stage.submit("calm", budget=GOOD)
    _soon(stage, notes, "lone", "threads that take all slots")
    _explained(stage, notes, waiting, "it waits for a slot")
    _finish(stage, worker, lease * 2)
    notes.once += [*ids, waiting]


def _suspects(stage: Stage, notes: _Notes, lease: float, kills: int) -> None:
    """Children die, and more jobs are suspected than there are processes and slots for them.

    They run until the gate is opened, so that none of them makes room before.
    """
    slots = 4
    worker = _start(stage, lease, children=2, slots=slots, process_slots=2)
    driver = stage.driver
    # All of them run when the children die, so that none is left to take a slot unsuspected.
    ids = stage.submit("gated", slots * 2, budget=GOOD)
    wait_until(lambda: len(stage.started(ids)) == len(ids), 30, "the runs")
    for child in driver.children(worker):
        driver.kill("child", child)
    # Two children died that ran the type: those that come now wait for processes as well.
    ids += stage.submit("gated", slots * 2 * (kills - 1), budget=GOOD)
    wait_until(lambda: _suspected(stage) > slots, 20, "suspects")
    # Other children have to start first; how long that takes is not what is measured here.
    (first,) = stage.submit("calm", budget=GOOD)
    wait_until(lambda: stage.auditor.ended([first]) == 1, 20, "children that work again")
    _soon(stage, notes, "calm", f"{_suspected(stage)} suspects")
    _explained(stage, notes, ids[-1], "it is suspected with many others")
    (stage.folder / GATE).touch()
    _finish(stage, worker, len(ids))


# ── parts ────────────────────────────────────────────────────────────────────────────────────


def _start(stage: Stage, lease: float, **settings: int) -> Process:
    driver = stage.driver
    worker = driver.start_worker(lease, program="poison", **settings)
    wait_until(lambda: driver.ready(worker), 20, "the worker")
    return worker


def _runs(stage: Stage) -> int:
    return len(stage.history().runs)


def _suspected(stage: Stage) -> int:
    endings = stage.history().endings.values()
    return sum(one.suspect and one.state in {"waiting", "running"} for one in endings)


def _soon(stage: Stage, notes: _Notes, type: str, beside: str) -> None:
    (job_id,) = stage.submit(type, budget=GOOD)
    begun = time.monotonic()
    try:
        wait_until(lambda: stage.auditor.ended([job_id]) == 1, SOON, f"the end of a {type} job")
    except Late:
        notes.slow.append((job_id, f"not within {SOON:g} s beside {beside}"))
        return
    seconds = time.monotonic() - begun
    notes.figures.append(f"a {type} job ended after {seconds:.2f} s beside {beside}")


def _explained(stage: Stage, notes: _Notes, job_id: str, what: str) -> None:
    async def explain(engine: Engine) -> tuple[set[Why], str]:
        found = await engine.inspector.explain(job_id)
        return (set(), "nothing") if found is None else ({r.why for r in found.reasons}, str(found))

    whys, text = stage.ask(explain)
    notes.figures.append(f"{what}: “{text}”")
    if not whys or whys - SENSIBLE:
        notes.odd.append((job_id, f"{what}, but is said to be: {text}"))


def _finish(stage: Stage, worker: Process, seconds: float) -> None:
    stage.wait_for_the_end_of_all_jobs(seconds + 30)
    stage.driver.drain_workers()
    wait_until(lambda: not worker.alive(), 30, "the end of the worker")
