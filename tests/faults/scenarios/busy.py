"""Handlers that keep their process from doing anything else for three leases run once."""

from __future__ import annotations

from pathlib import Path

from tests.faults.places import SQLITE, Ground
from tests.faults.scenarios.stage import Stage, Verdict

TYPES = ("spin", "block", "grip")
LEASES = 3


def run(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    stage = Stage("busy handlers", folder, ground)
    driver = stage.driver
    try:
        driver.start_worker(lease, children=len(TYPES), slots=4)
        driver.start_worker(lease, children=1, slots=1)
        ids = [job for type in TYPES for job in stage.submit(type, ms=int(lease * LEASES * 1000))]
        stage.submit("doze", 20, ms=20)
        stage.wait_for_the_end_of_all_jobs(lease * LEASES * len(TYPES) + 20)
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict()
    starts = [run.job_id for run in stage.history().runs]
    effects = stage.ledger.count()
    for type, job_id in zip(TYPES, ids, strict=True):
        if (starts.count(job_id), effects[job_id]) != (1, 1):
            text = f"{type} ran {starts.count(job_id)} times with {effects[job_id]} effects"
            verdict.blame("once", text, job_id)
    return verdict
