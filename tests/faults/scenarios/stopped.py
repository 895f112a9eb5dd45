"""Stops processes for longer than their lease and lets them go on: late writes must be refused."""

from __future__ import annotations

from pathlib import Path

from tests.faults.driver import Late, wait_until
from tests.faults.places import SQLITE, Ground
from tests.faults.scenarios.stage import Stage, Verdict

JOBS = 6
KILLERS = 3


def run_child(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Stop a child: its worker lives and keeps the leases, so nothing runs twice."""
    stage = Stage("stopped child", folder, ground)
    driver = stage.driver
    try:
        worker = driver.start_worker(lease, children=1, slots=JOBS)
        ids = stage.submit("doze", JOBS, ms=int(lease * 300))
        wait_until(lambda: len(stage.held(worker)) == JOBS, 20, "all jobs running")
        (child,) = driver.runners(worker)
        driver.stop([child])
        stage.pass_time(lease * 1.7)
        driver.resume([child])
        stage.wait_for_the_end_of_all_jobs(lease * 3 + 10)
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict()
    effects = stage.ledger.count()
    for job_id in ids:
        if effects[job_id] != 1:
            verdict.blame("once", f"{effects[job_id]} effects, though its worker lived", job_id)
    return verdict


def run_alone(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Stop the only worker: it finds its own leases ended, and must not start again what may not.

    It goes on before its children do, so it has to decide about claims of which nobody can tell
    it anything; one child does not live to see the end of the stop.
    """
    stage = Stage("stopped alone", folder, ground)
    driver = stage.driver
    try:
        worker = driver.start_worker(lease, children=2, slots=JOBS)
        wait_until(lambda: driver.ready(worker), 20, "the worker")
        wait_until(lambda: len(driver.runners(worker)) == 2, 20, "both children")
        stage.submit("sole", JOBS * 2, ms=int(lease * 1500))
        wait_until(lambda: len(stage.held(worker)) == JOBS * 2, 20, "all jobs running")
        children = driver.runners(worker)
        driver.stop([worker.found, *children])
        stage.pass_time(lease * 1.5)
        driver.resume([worker.found])
        stage.pass_time(lease / 3)
        driver.kill("child", children[0])
        driver.resume(children[1:])
        stage.submit("doze", JOBS, ms=10)
        stage.wait_for_the_end_of_all_jobs(lease * 8 + 20)
        driver.drain_workers()
    finally:
        stage.end()
    return stage.verdict()


def run_killers(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Let jobs that may start once kill their process: the store knows that they have started."""
    stage = Stage("killed at the start", folder, ground)
    driver = stage.driver
    ids: list[str] = []
    late: Late | None = None
    try:
        worker = driver.start_worker(lease, children=1, slots=JOBS)
        wait_until(lambda: driver.ready(worker), 20, "the worker")
        for _ in range(KILLERS):
            ids += stage.submit("sole kill")
            stage.wait_for_the_end_of_all_jobs(lease * 3 + 20)
        driver.drain_workers()
    except Late as error:
        late = error
    finally:
        stage.end()
    verdict = stage.verdict()
    if late is not None:
        verdict.blame("late", str(late))
    never = set(ids) - stage.started(ids)
    for job_id in sorted(never):
        verdict.blame("started", "never started, so nothing was tested", job_id)
    return verdict


def run_supervisor(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Stop a supervisor but not its children: nobody renews, so they have to stop by themselves."""
    stage = Stage("stopped supervisor", folder, ground)
    driver = stage.driver
    seconds = lease * 4
    try:
        sleeper = driver.start_worker(lease, children=1, slots=JOBS)
        stage.submit("doze", JOBS // 2, ms=int(seconds * 1000))
        stage.submit("nap", JOBS // 2, ms=int(seconds * 1000))
        wait_until(lambda: len(stage.held(sleeper)) == JOBS, 20, "all jobs running")
        other = driver.start_worker(lease, children=1, slots=JOBS)
        wait_until(lambda: driver.ready(other), 20, "the other worker")
        driver.stop([sleeper.found])
        stage.pass_time(seconds)
        driver.resume([sleeper.found])
        stage.wait_for_the_end_of_all_jobs(seconds * 2 + 20)
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict()
    if verdict.longest_overlap > lease / 2:
        # Nothing was late here but the supervisor, so this is stricter than the general bound.
        verdict.blame("I4", f"ran on for {verdict.longest_overlap:.2f} s beside the new holder")
    return verdict


def run_worker(folder: Path, lease: float, *, ground: Ground = SQLITE) -> Verdict:
    """Stop a whole worker: another one takes its job, and its late write is refused.

    The handler blocks the loop of its child. So when both go on, the handler returns before
    anything in the child can notice that the lease is gone, and only the store can refuse.
    """
    stage = Stage("stopped worker", folder, ground)
    driver = stage.driver
    try:
        workers = [driver.start_worker(lease, children=1, slots=JOBS) for _ in range(2)]
        wait_until(lambda: driver.ready(*workers), 20, "both workers")
        (job_id,) = stage.submit("block", ms=int(lease * 1500))
        wait_until(lambda: bool(stage.started([job_id])), 20, "the job running")
        workers.sort(key=lambda worker: not stage.held(worker))
        sleeper, other = workers
        children = driver.children(sleeper)
        driver.stop([sleeper.found, *children])
        stage.submit("doze", JOBS, ms=10)
        wait_until(lambda: job_id in stage.held(other), lease * 4 + 10, "the job taken over")
        driver.resume(children)
        wait_until(lambda: stage.ended_in(job_id, children), 20, "the late end")
        stage.pass_time(0.3)
        driver.resume([sleeper.found])
        stage.wait_for_the_end_of_all_jobs(lease * 8 + 20)
        driver.drain_workers()
    finally:
        stage.end()
    verdict = stage.verdict()
    if not verdict.refused:
        verdict.blame("stale", "no late write was refused, so none was made: nothing was tested")
    return verdict
