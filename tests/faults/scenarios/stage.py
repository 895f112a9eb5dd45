"""Where a scenario plays: a fresh store with its auditor, a driver, and the verdict at the end."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from lamplighter import runtime
from lamplighter.connect import connect
from lamplighter.model.ids import RANDOM_BITS, SHARD_BITS, compose
from lamplighter.model.job import Delivery, NewJob
from lamplighter.port.conformance.builders import new_job
from lamplighter.port.store import Engine, queue_topic
from lamplighter.port.values import QueueSettings, TenantSettings
from tests.faults import checker, history
from tests.faults.checker import Budget, Rules, Violation
from tests.faults.driver import Driver, Process, wait_until
from tests.faults.history import History, read_lines
from tests.faults.ledger import Ledger
from tests.faults.measures import rescue_times
from tests.faults.places import SQLITE, Ground, Place
from tests.faults.processes import Found
from tests.faults.rules import RULES, WEIGHTS

T = TypeVar("T")

PARTS = 1 << SHARD_BITS
ENDLESS_MS = 86_400_000


@dataclass(slots=True)
class Verdict:
    """What a scenario came to."""

    name: str
    folder: Path
    found: dict[str, list[Violation]] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    unanswered: int = 0
    """Submissions whose client did not live to see the answer."""
    repeated: int = 0
    """Submissions answered with a job that was there before."""
    jobs: int = 0
    effects: int = 0
    duplicates: int = 0
    refused: int = 0
    overlaps: int = 0
    longest_overlap: float = 0.0
    rescues: list[float] = field(default_factory=list)
    """Seconds from the death of a worker until its jobs could be claimed again."""
    served: Mapping[str, int] = field(default_factory=dict)
    figures: list[str] = field(default_factory=list)
    """What was measured, a line each."""

    @property
    def violations(self) -> list[Violation]:
        return [one for found in self.found.values() for one in found]

    def blame(self, invariant: str, text: str, job_id: str = "-") -> None:
        self.found.setdefault(invariant, []).append(Violation(invariant, job_id, text))


class Stage:
    """A store, its auditor and the processes on it."""

    def __init__(
        self, name: str, folder: Path, ground: Ground = SQLITE, *, place: Place | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=place is not None)
        self.name = name
        self.folder = folder
        self.place = place or ground.place(folder)
        self.auditor = self.place.auditor
        self.driver = Driver(folder, self.place.url, source=ground.source)
        self.ledger = Ledger(folder / "effects")
        self.budgets: dict[str, Budget] = {}
        """What jobs must come to, as far as that was said when they were submitted."""
        self.adjust: Callable[[History], None] | None = None
        """Puts right what processes told by a clock that is not the store's."""
        self._kept: History | None = None
        self._count = 0
        try:
            asyncio.run(self._prepare())
            self.auditor.install()
        except BaseException:
            self.driver.end()
            self.place.close()
            raise

    def end(self) -> None:
        """End the processes, read what the store has to say, and give the store up."""
        try:
            self.driver.end()
            kept = History()
            self.auditor.read_into(kept)
            kept.broken = self._faults()
            self._kept = kept
        finally:
            self.place.close()

    def _faults(self) -> list[str]:
        try:
            return self.auditor.faults()
        except Exception as error:  # noqa: BLE001 - a server that is still hurt; told with the rest
            return [f"it could not be asked: {error!r}"]

    async def _prepare(self) -> None:
        engine = connect(self.driver.url)
        await engine.open()
        for tenant, weight in WEIGHTS.items():
            settings = TenantSettings(weight=weight)
            await engine.settings.put_tenant(tenant, settings, by="faults", reason="weights")
        # The turn of who waited longest is another promise; here only the weights shall count.
        settings = QueueSettings(max_wait_ms=ENDLESS_MS)
        await engine.settings.put_queue("fair", settings, by="faults", reason="weights only")
        await engine.close()

    def submit(
        self,
        type: str,
        count: int = 1,
        *,
        tenant: str = "default",
        queue: str = "default",
        budget: Budget | None = None,
        **arguments: Any,
    ) -> list[str]:
        """Submit equal jobs from here, written down like a client's."""
        calls = [(type, budget, arguments)] * count
        return self.submit_all(calls, tenant=tenant, queue=queue)

    def submit_all(
        self,
        calls: Sequence[tuple[str, Budget | None, Mapping[str, Any]]],
        *,
        tenant: str = "default",
        queue: str = "default",
    ) -> list[str]:
        """Submit jobs in this order: type, what it must come to, arguments."""
        jobs: list[NewJob] = []
        for type, budget, arguments in calls:
            once = type in RULES.at_most_once
            job = new_job(
                type,
                id=self._next_id(),
                args=json.dumps(arguments).encode(),
                tenant=tenant,
                queue=queue,
                delivery=Delivery.AT_MOST_ONCE if once else Delivery.AT_LEAST_ONCE,
            )
            jobs.append(job)
            if budget is not None:
                self.budgets[job.id] = budget
        asyncio.run(self._submit(jobs))
        return [job.id for job in jobs]

    def _next_id(self) -> str:
        """Make an id; one after the other is for another part of the store, if it has several."""
        self._count += 1
        return compose(runtime.now_ms(), self._count % PARTS, runtime.random_bits(RANDOM_BITS))

    async def _submit(self, jobs: Sequence[NewJob]) -> None:
        journal = self.driver.journal
        for job in jobs:
            journal.write("submit_sent", job=job.id, type=job.type, tenant=job.tenant, key=None)
        engine = connect(self.driver.url)
        await engine.open()
        size = engine.capabilities.max_batch
        for start in range(0, len(jobs), size):
            for answer in await engine.jobs.submit(jobs[start : start + size]):
                journal.write("submit_answered", job=answer.id, answer=answer.answer, id=answer.id)
        await engine.wakeup.notify(queue_topic(jobs[0].queue))
        await engine.close()

    def ask(self, question: Callable[[Engine], Awaitable[T]]) -> T:
        """Ask the store something through its engine."""

        async def asked() -> T:
            engine = connect(self.driver.url)
            await engine.open()
            try:
                return await question(engine)
            finally:
                await engine.close()

        return asyncio.run(asked())

    def stop_between_writes(self, victims: list[Found]) -> None:
        """Stop processes when none of them holds the store's lock, which others would wait for."""

        async def stopped(engine: Engine) -> bool:
            self.driver.stop(victims)
            try:
                await asyncio.wait_for(engine.membership.leave("nobody"), 0.5)
            except TimeoutError:
                self.driver.resume(victims)
                return False
            return True

        while not self.ask(stopped):
            pass

    # ── look ─────────────────────────────────────────────────────────────────────────────────

    def started(self, job_ids: Iterable[str]) -> set[str]:
        """Give those of these jobs whose handlers have started, now or earlier."""
        lines = read_lines(self.driver.journal_path)
        begun = {line["job"] for line in lines if line["kind"] == "run_started"}
        return begun.intersection(job_ids)

    def ended_in(self, job_id: str, processes: Iterable[Found]) -> bool:
        """Tell whether the job's handler has come to its end in one of these processes."""
        pids = {process.pid for process in processes}
        lines = read_lines(self.driver.journal_path)
        ended = (line for line in lines if line["kind"] == "run_ended" and line["job"] == job_id)
        return any(line["pid"] in pids for line in ended)

    def spent_starting(self, job_id: str, since: float) -> float:
        """Seconds that passed after ``since`` while the child came up that first ran a job.

        How long that takes is the machine's affair: an interpreter and a program have to start.
        The child's own word ends it, not that of the job, so that a wait for a claim counts.
        """
        lines = list(read_lines(self.driver.journal_path))
        run = next(one for one in lines if one["kind"] == "run_started" and one["job"] == job_id)
        born = run["born"] / os.sysconf("SC_CLK_TCK")
        told = (
            one["boot"]
            for one in lines
            if one["kind"] == "event"
            and one["name"] == "child.started"
            and one["fields"]["pid"] == run["pid"]
            and born <= one["boot"] <= run["boot"]
        )
        return max(0.0, next(told, born) - max(born, since))

    def held(self, worker: Process) -> set[str]:
        """Give the jobs that a worker has now."""
        name = self.driver.worker_of(worker)
        return set() if name is None else set(self.auditor.running_under(name))

    def pass_time(self, seconds: float) -> None:
        """Let store time pass: a stop has to outlast leases, however long anything else takes."""
        begun = self.auditor.now_ms()
        wait_until(
            lambda: self.auditor.now_ms() >= begun + seconds * 1000, seconds + 5, "time to pass"
        )

    def wait_for_the_end_of_all_jobs(self, seconds: float) -> None:
        wait_until(lambda: self.auditor.unfinished() == 0, seconds, "the end of all jobs")

    def history(self) -> History:
        """Give everything that is known so far; after `end`, all there is to know."""
        told = history.read(self.driver.journal_path)
        if self._kept is None:
            self.auditor.read_into(told)
        else:
            told.writes, told.endings = self._kept.writes, self._kept.endings
            told.keyed, told.doubled = self._kept.keyed, self._kept.doubled
            told.broken = self._kept.broken
        if self.adjust is not None:
            self.adjust(told)
        return told

    def verdict(self, rules: Rules = RULES) -> Verdict:
        """Read everything and judge it."""
        told = self.history()
        rules = replace(rules, budgets={**rules.budgets, **self.budgets})
        self.ledger.close()
        effects = self.ledger.count()
        overlaps = checker.overlaps(told)
        verdict = Verdict(
            name=self.name,
            folder=self.folder,
            found=checker.check(told, rules),
            kills=told.kills,
            acknowledged=sum(call.acknowledged for call in told.submissions),
            unanswered=sum(call.answer is None for call in told.submissions),
            repeated=sum(call.answer == "already" for call in told.submissions),
            jobs=len(told.endings),
            effects=effects.total(),
            duplicates=sum(count - 1 for count in effects.values()),
            refused=told.refused,
            overlaps=len(overlaps),
            longest_overlap=max((one.seconds for one in overlaps), default=0.0),
            rescues=rescue_times(self.driver.journal_path, told.writes),
        )
        verdict.found["store"] = checker.sound_store(told)
        verdict.found["orphans"] = []
        for one in self.driver.left:
            verdict.blame("orphans", f"nobody has ended the process {one}")
        if rules.weights is not None:
            verdict.served = checker.served_while_backlogged(
                told.writes, rules.weights, rules.fair_queue
            )
        return verdict
