"""Stops a whole worker with all its processes for three leases: nothing it then writes counts.

Jobs run on its loop, in its threads and in processes of their own. While it stands still another
worker takes them over. Some handlers return as soon as they can go on, and write too late; the
others go on beside the new runs of their jobs, until somebody stops them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.faults.checker import GOOD, OVERLAP_GRACE
from tests.faults.driver import Process, wait_until
from tests.faults.history import boottime
from tests.faults.places import SQLITE, Ground
from tests.faults.poison import KILLED
from tests.faults.scenarios import poison
from tests.faults.scenarios.stage import Stage, Verdict

LEASES = 3
SLOTS = 12
EACH = 2
BEYOND = OVERLAP_GRACE + 3.0
"""Seconds for which handlers would go on after the stop if nobody stopped them."""
SLOT_BACK = 8.0
"""Seconds in which a slot comes back that a lost handler does not leave: its child is replaced.
Those that the new child takes to come up are not counted."""
PATIENCE = 30.0
"""Seconds that it may take to come up."""
LONG = ("doze", "nap", "deaf", "doze alone", "nap alone")
"""Handlers that have far to go."""


def run(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    stage = Stage("stopped group", folder, ground)
    driver = stage.driver
    try:
        sleeper = _start(stage, lease)
        long_ms = int((lease * LEASES + BEYOND) * 1000)
        ids = [job for type in LONG for job in stage.submit(type, EACH, ms=long_ms)]
        wait_until(lambda: stage.started(ids) == set(ids), 30, "the long jobs running")
        alone = stage.submit("block alone", ms=int(lease * 2500))
        wait_until(
            lambda: stage.started(alone) == set(alone), 30, "the job that blocks its process"
        )
        # Last, because nothing starts in its child any more once it runs.
        (late,) = stage.submit("block", ms=int(lease * 1500))
        wait_until(lambda: bool(stage.started([late])), 30, "the job that blocks its child")
        below = driver.tree(sleeper)
        stage.stop_between_writes([sleeper.found, *below])
        stopped_ms = stage.auditor.now_ms()
        held = stage.held(sleeper)
        other = _start(stage, lease)
        wait_until(lambda: _taken(stage, other) >= held, lease * 4 + 20, "all taken over")
        stage.pass_time(lease * LEASES - (stage.auditor.now_ms() - stopped_ms) / 1000)
        # First those who would write, then the one who could tell them not to.
        driver.resume([*reversed(below)])
        wait_until(lambda: stage.ended_in(late, below), 20, "the late end")
        stage.pass_time(0.3)
        driver.resume([sleeper.found])
        stage.wait_for_the_end_of_all_jobs(lease * LEASES + BEYOND + 30)
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict()
    verdict.figures.append(
        f"{len(below)} processes and {len(held)} jobs stopped, {verdict.refused} late writes "
        f"refused, {verdict.duplicates} plain effects repeated, both runs of a job went on for "
        f"{verdict.longest_overlap:.2f} s at most"
    )
    verdict.found.setdefault("stale", [])
    if not verdict.refused:
        verdict.blame("stale", "no late write was refused, so none was made: nothing was tested")
    return verdict


def run_hanging(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Stop a worker whose only job hangs, until another has it: its slot has to come back.

    Nobody renews what was lost, so nobody sees it reach its hard end; it still keeps a slot.
    """
    stage = Stage("stopped and hanging", folder, ground)
    driver = stage.driver
    try:
        sleeper = _start_poison(stage, lease)
        (hanging,) = stage.submit("hang shared", budget=replace(KILLED, losses=1))
        wait_until(lambda: bool(stage.started([hanging])), 30, "the job that hangs")
        victims = [sleeper.found, *driver.tree(sleeper)]
        stage.stop_between_writes(victims)
        other = _start_poison(stage, lease)
        stage.wait_for_the_end_of_all_jobs(lease * 4 + 40)
        other.popen.terminate()
        wait_until(lambda: not other.alive(), 30, "the end of the other worker")
        driver.resume(victims)
        begun = boottime()
        (calm,) = stage.submit("calm", budget=GOOD)
        stage.wait_for_the_end_of_all_jobs(SLOT_BACK + PATIENCE)
        starting = stage.spent_starting(calm, begun)
        seconds = boottime() - begun - starting
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict(poison.RULES)
    verdict.found.setdefault("slot", [])
    text = f"{seconds:.2f} s after the worker went on, and {starting:.2f} s for a child to come up"
    verdict.figures.append(f"another job ended {text}")
    if seconds > SLOT_BACK:
        verdict.blame("slot", f"another job ended only {text}", calm)
    return verdict


def _start_poison(stage: Stage, lease: float) -> Process:
    worker = stage.driver.start_worker(
        lease, program="poison", children=1, slots=1, process_slots=1, hard_after=1.0, grace=3.0
    )
    wait_until(lambda: stage.driver.ready(worker), 20, "a worker")
    return worker


def _start(stage: Stage, lease: float) -> Process:
    driver = stage.driver
    worker = driver.start_worker(lease, children=2, slots=SLOTS, process_slots=SLOTS)
    wait_until(lambda: driver.ready(worker), 20, "a worker")
    wait_until(lambda: len(driver.runners(worker)) == 2, 20, "its children")
    return worker


def _taken(stage: Stage, worker: Process) -> set[str]:
    """Give the jobs that a worker has had so far."""
    name = stage.driver.worker_of(worker) or "-"
    writes = stage.history().writes
    return {write.job_id for write in writes if (write.worker or "").startswith(name)}
