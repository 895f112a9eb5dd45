"""Kills a worker with everything it runs: its jobs can be claimed again within lease + 2 s."""

from __future__ import annotations

from pathlib import Path

from tests.faults.driver import wait_until
from tests.faults.places import SQLITE, Ground
from tests.faults.scenarios.stage import Stage, Verdict

JOBS = 8
MARGIN = 2.0


def run(folder: Path, lease: float, *, rounds: int = 1, ground: Ground = SQLITE) -> Verdict:
    stage = Stage("rescue", folder, ground)
    driver = stage.driver
    try:
        for _ in range(rounds):
            doomed = driver.start_worker(lease, children=1, slots=JOBS)
            wait_until(lambda one=doomed: driver.ready(one), 20, "the worker")
            witnesses = [one for one in driver.living("supervisor") if one is not doomed]
            if not witnesses:
                witness = driver.start_worker(lease, children=1, slots=JOBS)
                wait_until(lambda one=witness: driver.ready(one), 20, "the other worker")
            stage.submit("doze", JOBS * 2, ms=int(lease * 700))
            name = driver.worker_of(doomed) or ""
            wait_until(lambda name=name: bool(stage.auditor.running_under(name)), 20, "its jobs")
            driver.kill("supervisor", doomed.found)
            stage.wait_for_the_end_of_all_jobs(lease * 6 + 20)
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict()
    if not verdict.rescues:
        verdict.blame("rescue", "no job of the killed worker was rescued")
    for seconds in verdict.rescues:
        if seconds > lease + MARGIN:
            verdict.blame("rescue", f"claimable only {seconds:.2f} s after its worker's death")
    return verdict
