"""A peer in the arena: two worker processes and a producer, all in an environment of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines import family_ns, gauge_folder
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost
from benchmarks.fleet import CHILDREN
from benchmarks.gauges import Gauges, Start
from benchmarks.parts.delayed import summary
from benchmarks.peers.arena import Arena, Database
from benchmarks.peers.facts import Facts
from benchmarks.peers.ours import whole_second
from benchmarks.peers.side import GAUGES

_ROOT = Path(__file__).resolve().parent.parent.parent
_LOOK_EVERY = 0.005
_ASK_EVERY = 0.02
_STARTED_WITHIN = 60.0
_STUCK_AFTER = 30.0
_WARM_UP = 400
_GONE = 0.3
"""Seconds until a server has noticed that a client is gone."""


class Rival:
    """The same measurements as for ours."""

    def __init__(self, arena: Arena, peer: str, python: Path) -> None:
        self._arena = arena
        self._command = (str(python), "-m", "benchmarks.peers.side", peer)
        self._log = arena.folder / f"{peer}.log"
        self.facts = Facts(**json.loads(self._run("facts")))

    def submit_bulk(self, jobs: int) -> Cost:
        """By 1,000."""
        return self._submit("bulk", jobs, 1_000)

    def submit_single(self, jobs: int) -> Cost:
        """One at a time, each safe before the next."""
        return self._submit("single", jobs, 50)

    def drain(self, jobs: int) -> Cost:
        """With two worker processes, to the last row that is written about a job."""
        with self._working() as crew:
            crew.pause()
            crew.producer.ask("bulk", jobs)
            return crew.drain(jobs)

    def latency(self, jobs: int) -> list[float]:
        """Milliseconds from the call to the first instruction of the handler."""
        with self._working() as crew:
            crew.producer.ask("latency", 20)
            return crew.producer.ask("latency", jobs)["samples"]

    def due(self, jobs: int, ahead: float) -> dict[str, object]:
        """Jobs that fall due at one instant, so many seconds from now."""
        with self._working() as crew:
            first, due_ms = crew.ran(), whole_second(ahead)
            crew.producer.ask("due", jobs, due_ms / 1000)
            return summary(crew.starts(first + jobs, due_ms), jobs, due_ms)

    def memory(self, jobs: int) -> float:
        """Bytes that the store grows by with each waiting job."""
        with self._prepared() as database:
            # Between them nobody is connected: buffers are no part of a job.
            sizes: list[int] = []
            for count in (100, jobs):
                with self._producer(database, None) as producer:
                    producer.ask("bulk", count)
                time.sleep(_GONE)
                sizes.append(database.bytes_used())
            return (sizes[1] - sizes[0]) / jobs

    def _submit(self, wish: str, jobs: int, first: int) -> Cost:
        with self._prepared() as database, self._producer(database, None) as producer:
            producer.ask(wish, first)
            database.rest()
            before = database.server_cpu_ns()
            found = producer.ask(wish, jobs)
            spent = {"producer": found["cpu_ns"], "store": database.server_cpu_ns() - before}
            if (stored := database.waiting(self.facts.waiting)) != first + jobs:
                raise BenchmarkError(f"{first + jobs} jobs were submitted, {stored} are stored")
            return Cost(jobs, found["seconds"], spent)

    @contextlib.contextmanager
    def _working(self) -> Generator[_Crew]:
        with (
            self._prepared() as database,
            gauge_folder(self._arena.folder) as folder,
            self._producer(database, folder) as producer,
            contextlib.ExitStack() as stack,
        ):
            workers = [
                stack.enter_context(self._started(["work", database.url], folder))
                for _ in range(CHILDREN)
            ]
            crew = _Crew(self.facts, database, Gauges(folder), producer, workers)
            crew.ready()
            try:
                yield crew
            finally:
                crew.proceed()

    @contextlib.contextmanager
    def _prepared(self) -> Generator[Database]:
        with self._arena.database() as database:
            self._run("prepare", database.url)
            yield database

    @contextlib.contextmanager
    def _producer(self, database: Database, gauges: Path | None) -> Generator[_Producer]:
        with self._started(["produce", database.url], gauges) as process:
            yield _Producer(process)

    @contextlib.contextmanager
    def _started(
        self, arguments: Sequence[str], gauges: Path | None
    ) -> Generator[subprocess.Popen[str]]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [*self._command, *arguments],
                cwd=_ROOT,
                env=_environment() | ({} if gauges is None else {GAUGES: str(gauges)}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Some start processes of their own, which end with it.
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def _run(self, *arguments: str) -> str:
        ended = subprocess.run(
            [*self._command, *arguments],
            cwd=_ROOT,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise BenchmarkError(f"{' '.join(self._command)} failed: {ended.stderr.strip()}")
        return ended.stdout


class _Producer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, wish: str, jobs: int, due: float = 0) -> dict[str, Any]:
        """Let it do something, and give what it tells about that."""
        if self._process.stdin is None or self._process.stdout is None:
            raise BenchmarkError("a producer cannot be asked")
        self._process.stdin.write(f"{wish} {jobs} {due}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BenchmarkError(f"a producer ended while it was asked for {wish} {jobs}")
        return json.loads(line)


class _Crew:
    """Workers of a peer that run, and can be stopped and continued between two instructions."""

    def __init__(
        self,
        facts: Facts,
        database: Database,
        gauges: Gauges,
        producer: _Producer,
        workers: list[subprocess.Popen[str]],
    ) -> None:
        self.producer = producer
        self._facts = facts
        self._database = database
        self._gauges = gauges
        self._workers = workers

    def ready(self) -> None:
        """Wait until every worker has run jobs, and all have ended."""
        deadline = time.monotonic() + _STARTED_WITHIN
        submitted = 0
        while len(self._gauges.pids()) < CHILDREN or not all(self._gauges.counts()):
            self._check()
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{self._facts.name} was not ready in {_STARTED_WITHIN:g} s")
            if len(self._gauges.pids()) == CHILDREN:
                self.producer.ask("bulk", _WARM_UP)
                submitted += _WARM_UP
            time.sleep(0.1)
        self._until(lambda: self._gauges.total() >= submitted)
        self._ended()

    def drain(self, jobs: int) -> Cost:
        """Let the workers go on until nothing is left."""
        self._database.rest()
        first = self._gauges.total()
        before, began = self._cpu(), time.monotonic()
        self.proceed()
        self._until(lambda: self._gauges.total() >= first + jobs)
        ended, after = self._ended()
        seconds = ended - began
        if (ran := self._gauges.total() - first) != jobs:
            raise BenchmarkError(f"{jobs} jobs were submitted, but {ran} handlers ran")
        return Cost(jobs, seconds, {role: ns - before[role] for role, ns in after.items()})

    def ran(self) -> int:
        """Count the handlers that have run so far."""
        return self._gauges.total()

    def starts(self, total: int, due_ms: int) -> list[Start]:
        """Give the starts of jobs that fall due, once so many have run in all."""
        margin = due_ms / 1000 - time.time()
        if margin <= 0:
            raise BenchmarkError(f"submitting took {-margin:.1f} s too long")
        time.sleep(margin)
        self._until(lambda: self._gauges.total() >= total)
        return self._gauges.new_starts()

    def pause(self) -> None:
        """Stop the workers where they are: jobs can be submitted and none is taken."""
        for worker in self._workers:
            worker.send_signal(signal.SIGSTOP)

    def proceed(self) -> None:
        """Let them go on."""
        for worker in self._workers:
            worker.send_signal(signal.SIGCONT)

    def _ended(self) -> tuple[float, dict[str, int]]:
        """Wait until nothing is left; gives the time and the CPU before the question was asked."""
        deadline = time.monotonic() + _STUCK_AFTER
        while time.monotonic() < deadline:
            # Seldom: counting the rows of a table that has just been emptied is not for nothing.
            time.sleep(_ASK_EVERY)
            self._check()
            now, spent = time.monotonic(), self._cpu()
            if not self._database.waiting(self._facts.waiting):
                return now, spent
        raise BenchmarkError(f"jobs of {self._facts.name} have run, and are not finished")

    def _cpu(self) -> dict[str, int]:
        return {
            "driver": time.process_time_ns(),
            "workers": sum(family_ns(worker.pid) for worker in self._workers),
            "store": self._database.server_cpu_ns(),
        }

    def _until(self, reached: Callable[[], bool]) -> None:
        last, moved_at = -1, time.monotonic()
        while not reached():
            self._check()
            if (ran := self._gauges.total()) != last:
                last, moved_at = ran, time.monotonic()
            if time.monotonic() - moved_at > _STUCK_AFTER:
                raise BenchmarkError(f"{self._facts.name} is stuck after {last} handlers")
            time.sleep(_LOOK_EVERY)

    def _check(self) -> None:
        for worker in self._workers:
            if worker.poll() is not None:
                status = worker.returncode
                raise BenchmarkError(f"a worker of {self._facts.name} ended: status {status}")


def _environment() -> dict[str, str]:
    """Nothing of ours is to be imported but the programs here."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LAMPLIGHTER_"))}
    return kept | {"PYTHONPATH": str(_ROOT)}
