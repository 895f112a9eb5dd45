"""Stops processes for longer than their lease and lets them go on: late writes must be refused."""

from __future__ import annotations

from pathlib import Path

from tests.faults.driver import Process, wait_until
from tests.faults.history import read_lines
from tests.faults.scenarios.stage import Stage, Verdict

JOBS = 6


def run_child(folder: Path, lease: float) -> Verdict:
    """Stop a child: its worker lives and keeps the leases, so nothing runs twice."""
    stage = Stage("stopped child", folder)
    driver = stage.driver
    try:
        worker = driver.start_worker(lease, children=1, slots=JOBS)
        ids = stage.submit("doze", JOBS, ms=int(lease * 300))
        wait_until(lambda: len(_held(stage, worker)) == JOBS, 20, "all jobs running")
        (child,) = driver.children(worker)
        driver.stop([child])
        _pass(stage, lease * 1.7)
        driver.resume([child])
        stage.wait_for_the_end_of_all_jobs(lease * 3 + 10)
        driver.drain_workers()
    finally:
        driver.end()
    verdict = stage.verdict()
    effects = stage.ledger.count()
    for job_id in ids:
        if effects[job_id] != 1:
            verdict.blame("once", f"{effects[job_id]} effects, though its worker lived", job_id)
    return verdict


def run_worker(folder: Path, lease: float, *, source: Path | None = None) -> Verdict:
    """Stop a whole worker: another one takes its jobs, and its late writes are refused."""
    stage = Stage("stopped worker", folder, source=source)
    driver = stage.driver
    try:
        sleeper, other = (driver.start_worker(lease, children=1, slots=JOBS) for _ in range(2))
        wait_until(lambda: driver.ready(sleeper, other), 20, "both workers")
        stage.submit("doze", JOBS * 2, ms=int(lease * 1500))
        wait_until(lambda: bool(_held(stage, sleeper)), 20, "a job on the worker to be stopped")
        driver.stop([sleeper.found, *driver.children(sleeper)])
        held = _held(stage, sleeper)
        wait_until(
            lambda: not held.isdisjoint(_held(stage, other)), lease * 4 + 10, "a job taken over"
        )
        # The children alone at first: nobody tells them that their leases are gone, so they
        # write what their handlers came to, and only the store can refuse it.
        driver.resume([one for one in driver.stopped() if one != sleeper.found])
        wait_until(lambda: held <= _ended_late(stage, sleeper), 20, "the late ends")
        _pass(stage, 0.3)
        driver.resume([sleeper.found])
        stage.wait_for_the_end_of_all_jobs(lease * 8 + 20)
        driver.drain_workers()
    finally:
        driver.end()
    verdict = stage.verdict()
    if not verdict.refused:
        verdict.blame("stale", "no late write was refused, so none was made: nothing was tested")
    return verdict


def _held(stage: Stage, worker: Process) -> set[str]:
    name = stage.driver.worker_of(worker)
    return set() if name is None else set(stage.auditor.running_under(name))


def _ended_late(stage: Stage, worker: Process) -> set[str]:
    """Jobs whose handlers have come to their end in a child of this worker."""
    pids = {child.pid for child in stage.driver.children(worker)}
    return {
        line["job"]
        for line in read_lines(stage.driver.journal_path)
        if line["kind"] == "run_ended" and line["pid"] in pids
    }


def _pass(stage: Stage, seconds: float) -> None:
    """Let store time pass: the stop has to outlast the lease, however long anything else takes."""
    begun = stage.auditor.now_ms()
    wait_until(
        lambda: stage.auditor.now_ms() >= begun + seconds * 1000, seconds + 5, "time to pass"
    )
