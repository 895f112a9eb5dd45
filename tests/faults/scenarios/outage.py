"""Workers and clients at work on a server that is hurt: afterwards all go on by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.driver import Late, wait_until
from tests.faults.processes import Found
from tests.faults.rules import RULES
from tests.faults.scenarios.stage import Stage, Verdict

RESUME = 10.0
"""Seconds after the server is well again within which everybody is at work again."""
PATIENCE = 40.0
"""Seconds for which is waited all the same, to tell how long it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is going on."""

    lease: float = 3.0
    workers: int = 2
    children: int = 2
    slots: int = 4
    clients: int = 2
    rate: float = 12.0
    """Submissions per second and client."""
    drain: float = 120.0


LARGE = Plan()
SMALL = Plan(lease=2.0, children=1, rate=10.0, drain=60.0)


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long it took until everybody was at work again; None: longer than we waited."""

    what: str
    seconds: dict[str, float | None]

    @property
    def slowest(self) -> float:
        return max(PATIENCE if one is None else one for one in self.seconds.values())

    def __str__(self) -> str:
        return f"all at work {self.slowest:.2f} s after {self.what}"


class Flow:
    """Workers and clients, the processes they are, and how they come back."""

    def __init__(self, stage: Stage, seed: str, plan: Plan) -> None:
        self.stage = stage
        self.driver = stage.driver
        self.seed = seed
        self.plan = plan
        self.recoveries: list[Recovery] = []
        self.figures: list[str] = []
        self._workers: set[str] = set()
        self._clients: set[str] = set()
        self._processes: list[Found] = []
        self._gone: list[Found] | None = None
        self._codes: list[int | None] = []

    def begin(self) -> None:
        """Start everybody, and wait until each has done something."""
        plan, driver = self.plan, self.driver
        for _ in range(plan.workers):
            driver.start_worker(plan.lease, children=plan.children, slots=plan.slots)
        wait_until(lambda: driver.ready(*driver.living("supervisor")), 30, "the workers")
        for number in range(plan.clients):
            driver.start_client(f"client-{number}", self.seed, 0, plan.rate)
        self._clients = {f"client-{number}" for number in range(plan.clients)}
        most = plan.workers * plan.children
        wait_until(lambda: len(self._ends(0)) >= most, 30, "a job ended by every child")
        self._workers = set(self._ends(0))
        wait_until(lambda: self._answers(0).keys() >= self._clients, 30, "an answer to each client")
        self._processes = [
            *(one.found for one in driver.processes),
            *(child for one in driver.living("supervisor") for child in driver.children(one)),
        ]

    def healed(self, what: str) -> None:
        """Say that the server is well again; waits until everybody is at work."""
        since = time.time_ns() // 1_000_000
        self.driver.journal.write("healed", what=what)

        def times() -> dict[str, int]:
            return {**self._ends(since), **self._answers(since)}

        wanted = self._workers | self._clients
        deadline = time.monotonic() + PATIENCE
        while not (found := times()).keys() >= wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        seconds = {name: (found[name] - since) / 1000 if name in found else None for name in wanted}
        self.recoveries.append(Recovery(what, seconds))

    def calm(self) -> None:
        """Let the jobs come to their ends, and the processes to theirs."""
        self._gone = [one for one in self._processes if not one.alive()]
        self.driver.stop_clients()
        self.stage.wait_for_the_end_of_all_jobs(self.plan.drain)
        self._gone += [one for one in self._lasting() if not one.alive()]
        self.driver.drain_workers()
        self._codes = [process.popen.returncode for process in self.driver.processes]

    def judge(self, verdict: Verdict) -> None:
        """Add what the processes themselves have shown."""
        for name in ("resume", "restart"):
            verdict.found.setdefault(name, [])
        verdict.figures += [str(one) for one in self.recoveries] + self.figures
        for one in self.recoveries:
            if one.slowest > RESUME:
                late = {n: s for n, s in one.seconds.items() if s is None or s > RESUME}
                verdict.blame("resume", f"{one}: {late}")
        for one in self._gone or ():
            verdict.blame("restart", f"process {one.pid} did not live through it")
        if not self._gone:
            verdict.figures.append(f"{len(self._processes)} processes, the same before and after")
        if any(self._codes):
            verdict.blame("end", f"processes ended with {self._codes}")
        failures = self.stage.history().failures
        told = ", ".join(f"{name} {count}" for name, count in sorted(failures.items()))
        verdict.figures.append(f"calls of clients that failed: {told or 'none'}")

    def _ends(self, since: int) -> dict[str, int]:
        """Say when each child that is waited for has first ended a job claimed since then."""
        ends = self.stage.auditor.first_ends(since)
        return {name: at for name, at in ends.items() if name in self._workers or not since}

    def _answers(self, since: int) -> dict[str, int]:
        self.driver.look()
        answers = self.driver.answers.items()
        return {
            name: min(after) for name, all_ in answers if (after := [a for a in all_ if a >= since])
        }

    def _lasting(self) -> list[Found]:
        clients = {one.found for one in self.driver.processes if one.what == "client"}
        return [one for one in self._processes if one not in clients]


def play(stage: Stage, seed: str, plan: Plan, harm: Callable[[Flow], None]) -> Verdict:
    """Let everybody work, do the harm, let everybody finish, and judge."""
    flow = Flow(stage, seed, plan)
    late: Late | None = None
    try:
        flow.begin()
        harm(flow)
        flow.calm()
    except Late as error:
        late = error
    finally:
        stage.end()
    verdict = stage.verdict(RULES)
    flow.judge(verdict)
    if late is not None:
        verdict.blame("late", str(late))
    return verdict
