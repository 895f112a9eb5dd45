"""Kills children, workers and clients at random while many kinds of jobs are running."""

from __future__ import annotations

import heapq
import random
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tests.faults.driver import Late, Process, wait_until
from tests.faults.places import SQLITE, Ground
from tests.faults.processes import Found
from tests.faults.rules import RULES, WEIGHTS
from tests.faults.scenarios.stage import Stage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large and how rough a run is."""

    lease: float = 3.0
    workers: int = 2
    children: int = 3
    slots: int = 10
    clients: int = 2
    rate: float = 12.0
    """Submissions per second and client."""
    kill_rate: float = 1.5
    """Kills per second."""
    stop_share: float = 0.12
    """Stops by signal for each kill."""
    seconds: float = 60.0
    kills: int | None = None
    """Run until so many kills, instead of for so many seconds."""
    backlog: int = 150
    """Jobs of the lightest tenant in the queue that fairness is judged in."""
    drain: float = 180.0


KINDS = (("child", 0.6), ("supervisor", 0.2), ("client", 0.2))


def run(folder: Path, seed: str, plan: Plan, *, ground: Ground = SQLITE) -> Verdict:
    stage = Stage("load", folder, ground)
    storm = _Storm(stage, seed, plan)
    codes: list[int | None] = []
    late = None
    try:
        storm.blow()
        storm.calm()
        left = stage.driver.living("supervisor")
        stage.driver.drain_workers()
        codes = [process.popen.returncode for process in left]
    except Late as error:
        late = error
    finally:
        stage.end()
    verdict = stage.verdict(replace(RULES, weights=WEIGHTS))
    if late is not None:
        verdict.blame("late", str(late))
    if any(codes):
        verdict.blame("end", f"workers ended with {codes}")
    return verdict


class _Storm:
    """The loop that hurts, and puts back what it has killed like any service manager would."""

    def __init__(self, stage: Stage, seed: str, plan: Plan) -> None:
        self._driver = stage.driver
        self._stage = stage
        self._seed = seed
        self._plan = plan
        self._dice = random.Random(f"{seed}-storm")
        self._kills = 0
        self._resumes: list[tuple[float, int, list[Found]]] = []
        self._stops = 0

    def blow(self) -> None:
        plan = self._plan
        for tenant, weight in WEIGHTS.items():
            self._stage.submit("fair", plan.backlog * weight, tenant=tenant, queue="fair")
        end = time.monotonic() + plan.seconds
        while self._kills < plan.kills if plan.kills else time.monotonic() < end:
            self._replace_the_dead()
            time.sleep(self._dice.expovariate(plan.kill_rate))
            self._resume_due()
            if self._dice.random() < plan.stop_share:
                self._stop_someone()
            self._kill_someone()

    def calm(self) -> None:
        """Heal everything and let the jobs come to their ends."""
        self._driver.resume(list(self._driver.stopped()))
        self._driver.stop_clients()
        self._replace_the_dead(clients=False)
        self._stage.wait_for_the_end_of_all_jobs(self._plan.drain)
        # One that was started last may still be on its way; before it listens, a signal ends it.
        there = self._driver.living("supervisor")
        wait_until(lambda: self._driver.ready(*there), 60, "all workers to be ready")

    def _replace_the_dead(self, *, clients: bool = True) -> None:
        driver, plan = self._driver, self._plan
        for _ in range(plan.workers - len(driver.living("supervisor"))):
            driver.start_worker(plan.lease, children=plan.children, slots=plan.slots)
        driver.look()
        alive = {process.name for process in driver.living("client")}
        for number in range(plan.clients if clients else 0):
            name = f"client-{number}"
            if name not in alive:
                # A few steps back: calls whose answer was lost are made again.
                first = max(0, driver.steps.get(name, -1) - 3)
                driver.start_client(name, self._seed, first, plan.rate)

    def _kill_someone(self) -> None:
        kinds, weights = zip(*KINDS, strict=True)
        (kind,) = self._dice.choices(kinds, weights)
        victims = self._victims(kind)
        if victims:
            self._driver.kill(kind, self._dice.choice(victims))
            self._kills += 1

    def _victims(self, kind: str) -> list[Found]:
        if kind != "child":
            return [process.found for process in self._driver.living(kind)]
        return [child for worker in self._workers() for child in self._driver.children(worker)]

    def _stop_someone(self) -> None:
        """Stop a child, a supervisor, or a worker with all its children, for up to two leases."""
        workers = [one for one in self._workers() if one.found not in self._driver.stopped()]
        if len(workers) < 2:
            return
        worker = self._dice.choice(workers)
        children = self._driver.children(worker)
        choices = [[worker.found, *children], [worker.found], *([child] for child in children)]
        victims = self._dice.choice(choices)
        self._driver.stop(victims)
        self._stops += 1
        until = time.monotonic() + self._dice.uniform(0.2, 2.0) * self._plan.lease
        heapq.heappush(self._resumes, (until, self._stops, victims))

    def _resume_due(self) -> None:
        while self._resumes and self._resumes[0][0] <= time.monotonic():
            self._driver.resume(heapq.heappop(self._resumes)[2])

    def _workers(self) -> list[Process]:
        return self._driver.living("supervisor")
