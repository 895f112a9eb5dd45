"""A worker on a store, usually with two children, and the borders of what is measured on it.

The queue is held while jobs are submitted. Unholding it begins a phase, with every process
started and warm; a phase ends when nothing runs any more, so that the last settle is part of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from pathlib import Path

from benchmarks import cpu
from benchmarks.engines import Store, gauge_folder
from benchmarks.errors import BenchmarkError
from benchmarks.figures import Cost
from benchmarks.gauges import Gauges
from benchmarks.jobs import EXTRA, GAUGES, PAYLOAD, Program, declare
from lamplighter import App
from lamplighter.job import Job
from lamplighter.port.store import queue_topic
from lamplighter.port.values import QueueSettings

CHILDREN = 2
QUEUE = "default"
DRIVER = "driver"
"""Role of the process that measures."""

_ROOT = Path(__file__).resolve().parent.parent
_LOOK_EVERY = 0.005
_STARTED_WITHIN = 20.0
_STUCK_AFTER = 15.0
_WARM_UP = 400
_BATCH = 5_000


class Fleet:
    """Everything that takes part in a measurement.

    Driver, supervisor, children, the processes that these start for one job each, store.
    """

    def __init__(
        self, store: Store, program: Program, gauges: Gauges, supervisor: int, children: int
    ) -> None:
        self.store = store
        self.program = program
        self.gauges = gauges
        self._supervisor = supervisor
        self._children = children

    # ── the work ─────────────────────────────────────────────────────────────────────────────

    async def submit(
        self, jobs: int, *, tenants: int = 1, job: Job[[str], None] | None = None
    ) -> None:
        """Submit jobs, no-ops by default, spread evenly over so many tenants."""
        await fill(self.program, jobs, tenants=tenants, job=job)

    async def hold(self, *, held: bool) -> None:
        """Close or open the queue."""
        engine = await self.program.app.engine()
        settings = QueueSettings(held=held)
        await engine.settings.put_queue(QUEUE, settings, by="benchmark", reason="phase border")
        await engine.wakeup.notify(queue_topic(QUEUE))

    async def ran(self, total: int) -> None:
        """Wait until so many handlers have run in all."""
        await self._progress(lambda: self.gauges.total() >= total, f"{total} handlers have run")

    async def settled(self, *, everything: bool) -> None:
        """Wait until nothing runs, and with ``everything`` also nothing waits."""
        engine = await self.program.app.engine()
        last, moved_at = -1, time.monotonic()
        while True:
            counts = await engine.inspector.counts()
            if counts["dead"]:
                raise BenchmarkError(f"{counts['dead']} jobs died")
            if not counts["running"] and not (everything and counts["waiting"]):
                return
            if (ran := self.gauges.total()) != last:
                last, moved_at = ran, time.monotonic()
            if time.monotonic() - moved_at > _STUCK_AFTER:
                raise BenchmarkError(f"jobs are stuck: {counts}")
            await asyncio.sleep(_LOOK_EVERY)

    async def _progress(self, reached: Callable[[], bool], what: str) -> None:
        last, moved_at = -1, time.monotonic()
        while not reached():
            if (ran := self.gauges.total()) != last:
                last, moved_at = ran, time.monotonic()
            else:
                # Perhaps because those that run are not known yet.
                self.gauges.look()
            if time.monotonic() - moved_at > _STUCK_AFTER:
                raise BenchmarkError(f"waited in vain until {what}; {last} have")
            await asyncio.sleep(_LOOK_EVERY)

    # ── the measure ──────────────────────────────────────────────────────────────────────────

    async def drain(self, jobs: int, *, everything: bool) -> Cost:
        """Open the queue until so many jobs have run, and give what that cost.

        With ``everything`` these are all jobs there are: one more or less is an error. Otherwise
        the queue is closed when the number is reached, and what ran in excess counts as well.
        """
        self.store.rest()
        self.gauges.look()
        first = self.gauges.total()
        before, began = self.cpu(), time.monotonic()
        await self.hold(held=False)
        await self.ran(first + jobs)
        if not everything:
            await self.hold(held=True)
        await self.settled(everything=everything)
        seconds, after = time.monotonic() - began, self.cpu()
        ran = self.gauges.total() - first
        if everything:
            await self.hold(held=True)
            if ran != jobs:
                raise BenchmarkError(f"{jobs} jobs were submitted, but {ran} handlers ran")
        return Cost(ran, seconds, {role: ns - before[role] for role, ns in after.items()})

    def cpu(self) -> dict[str, int]:
        """CPU time so far, by role."""
        return {
            DRIVER: time.process_time_ns(),
            "supervisor": cpu.process_ns(self._supervisor),
            "children": sum(cpu.process_ns(pid) for pid in self.gauges.every_pid()),
            "slots": self._slots_ns(),
            "store": self.store.server_cpu_ns(),
        }

    def _slots_ns(self) -> int:
        """CPU time so far of the children's children: of those that live, and of all the dead."""
        spent = sum(cpu.waited_ns(pid) for pid in self.gauges.every_pid())
        for pid in self.gauges.slot_pids():
            with contextlib.suppress(BenchmarkError):
                spent += cpu.process_ns(pid)
        return spent

    def loops_ns(self) -> int | None:
        """CPU time so far of the children's event loops; the rest is their store threads."""
        found = [cpu.main_thread_ns(pid) for pid in self.gauges.every_pid()]
        return None if None in found else sum(ns for ns in found if ns is not None)

    # ── the start ────────────────────────────────────────────────────────────────────────────

    async def ready(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until every child runs jobs, then close the queue."""
        deadline = time.monotonic() + _STARTED_WITHIN
        submitted = 0
        while len(self.gauges.pids()) < self._children or not all(self.gauges.counts()):
            if process.poll() is not None:
                raise BenchmarkError(f"the worker ended with status {process.returncode}")
            if time.monotonic() > deadline:
                raise BenchmarkError(f"the worker was not ready within {_STARTED_WITHIN:g} s")
            if len(self.gauges.pids()) == self._children:
                await self.submit(_WARM_UP)
                submitted += _WARM_UP
            await asyncio.sleep(0.1)
        await self.ran(submitted)
        await self.settled(everything=True)
        await self.hold(held=True)

    async def warm_up(self, job: Job[[str], None]) -> None:
        """Run some jobs of another kind than the no-ops that the children have begun with."""
        await self.submit(_WARM_UP, job=job)
        await self.hold(held=False)
        await self.settled(everything=True)
        await self.hold(held=True)


@contextlib.asynccontextmanager
async def fleet(
    store: Store,
    *,
    children: int = CHILDREN,
    extra: Sequence[str] = (),
    more: Mapping[str, str] = {},
) -> AsyncGenerator[Fleet]:
    """Give a worker that is started, warm and idle, its queue held.

    ``extra`` names the job types it knows beside the two usual ones; ``more`` goes into its
    environment.
    """
    async with opened(store) as program:
        environment = {"LAMPLIGHTER_CHILDREN": str(children), EXTRA: " ".join(extra), **more}
        with (
            gauge_folder(store.folder) as folder,
            _started(store, folder, environment) as process,
        ):
            made = Fleet(store, program, Gauges(folder), process.pid, children)
            await made.ready(process)
            yield made


@contextlib.asynccontextmanager
async def opened(store: Store) -> AsyncGenerator[Program]:
    """Give the program of the jobs, connected with a store."""
    program = declare(App(store.url))
    async with program.app:
        yield program


async def fill(
    program: Program, jobs: int, *, tenants: int = 1, job: Job[[str], None] | None = None
) -> None:
    """Submit jobs, no-ops by default, in large batches; their tenants take turns."""
    job = job or program.count
    ways = [job] if tenants == 1 else [job.options(tenant=f"tenant-{n}") for n in range(tenants)]
    for start in range(0, jobs, _BATCH):
        numbers = range(start, min(start + _BATCH, jobs))
        await program.app.submit_many([ways[n % tenants].call(PAYLOAD) for n in numbers])


@contextlib.contextmanager
def _started(
    store: Store, gauges: Path, more: Mapping[str, str]
) -> Generator[subprocess.Popen[bytes]]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("LAMPLIGHTER_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.worker"],
        cwd=_ROOT,
        env={
            **inherited,
            "LAMPLIGHTER_URL": store.url,
            "LAMPLIGHTER_GRACE": "2",
            GAUGES: str(gauges),
            **more,
        },
        stdin=subprocess.PIPE,
        # What handlers print.
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            # Its children die with it.
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()
