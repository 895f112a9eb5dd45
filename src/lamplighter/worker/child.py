"""The process that runs jobs: claims and settles on its own connection, reports all it does.

Started by the supervisor as ``python -m lamplighter.worker.child FD PARENT NAME``.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Iterable, Mapping
from math import inf
from typing import Any, NoReturn

from lamplighter import command, runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.outcome import Misfit, Outcome
from lamplighter.model.stride import QueueStride
from lamplighter.observability import calls, events, logs, outlet
from lamplighter.port.store import Engine
from lamplighter.registry import Registry
from lamplighter.worker import capture, failure, limits, offer
from lamplighter.worker.bench import Numbers, process_slots
from lamplighter.worker.cancels import CancelListener
from lamplighter.worker.claimer import Claimer
from lamplighter.worker.counting import Counts
from lamplighter.worker.executor import Executor
from lamplighter.worker.kinds import Kinds
from lamplighter.worker.link import (
    AskCancels,
    Begin,
    Cancel,
    Drain,
    Ended,
    Finished,
    Forsaken,
    FromSupervisor,
    Isolate,
    Kept,
    Link,
    Lost,
    MakeWay,
    Slot,
    Told,
    Unkept,
    Yours,
    child_end,
)
from lamplighter.worker.load import Borrower, load, registry_of
from lamplighter.worker.placer import Placer
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.recorder import Recorder
from lamplighter.worker.reporter import Reporter
from lamplighter.worker.run import Run, Stop, margin
from lamplighter.worker.rush import Way
from lamplighter.worker.settler import Settler
from lamplighter.worker.signals import SIGNALS, leave_to_supervisor
from lamplighter.worker.slots import Slots
from lamplighter.worker.standstill import Standstill
from lamplighter.worker.starter import Starter
from lamplighter.worker.subject import subject
from lamplighter.worker.vitals import Vitals

BROKEN = 3
"""Exit code of a child that could not start; it has said why."""
CRASHED = 4
"""Exit code of a child a vital part of which died."""

UNWIND = 1.0
"""Time that handlers get to react when they are told to stop for good."""
WRITE = 5.0
"""Time that the last settlements get."""

_FREQUENT = frozenset(
    {events.JOB_SUBMITTED, events.JOB_CLAIMED, events.JOB_STARTED, events.JOB_SETTLED}
)
"""Told only when somebody asked for events; the others always are."""
_OWN = frozenset({events.STORE_CALL})
"""Never told: they concern this process alone."""


class Child:
    """The parts of a child, wired to each other and to the supervisor."""

    def __init__(self, sock: socket.socket, vitals: Vitals) -> None:
        self._vitals = vitals
        self._link: Link[FromSupervisor] = child_end(sock, self._hear, _vanish)
        self._begun: asyncio.Future[Begin] = asyncio.get_running_loop().create_future()
        self._drain_at: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._deadline = 0.0
        self._kept_since = 0.0
        self._way = Way()
        self._reassured_at = -inf
        self._believed = 0.0
        self._patience = 0.0
        self._wants_events = False
        self._ending = False
        self._counts: Counts | None = None
        self._pulse = Pulse(self._link)
        self._closing = contextlib.AsyncExitStack()
        self._provided: Mapping[object, object] = {}

    async def run(self) -> int:
        """Live; gives the exit code."""
        begin = await self._begun
        try:
            sys.path[:] = begin.path
            # Before the import: some libraries remember the streams they find then.
            capture.install_streams()
            program = load(begin.spec)
            registry = registry_of(program, begin.spec)
            settings = Settings(**begin.settings)
            if settings.metrics:
                self._counts = Counts(calls.watch())
            if isinstance(program, Borrower):
                program.configure(settings)
            engine = connect(settings.url, deadline=settings.store_deadline)
            # The supervisor has made the store: where it is gone by now, an empty one is no help.
            await engine.open(create=False)
            if isinstance(program, Borrower):
                # What handlers submit goes to the store the worker was started for.
                program.adopt(engine)
            registry.check()
            for name in registry.names():
                limits.check(registry.get(name).surroundings.limits, owner=name)
            capture.install()
            logs.install(settings.log_format, subject)
            if not begin.alone:
                # Where jobs run alone, their processes open it.
                opened = registry.providers.opened()
                self._provided = await self._closing.enter_async_context(opened)
        except Exception as error:  # noqa: BLE001 - whatever it is, the supervisor has to say it
            await self._break(error)
            return BROKEN
        self._wants_events = begin.events
        stop_telling = events.listen(self._tell)
        try:
            self._assemble(begin, settings, engine, registry)
            await self._work()
        finally:
            await self._close()
            stop_telling()
            await engine.close()
        return 0

    async def _close(self) -> None:
        """Close what was provided, within the grace; its failure cannot change any outcome now."""
        try:
            async with asyncio.timeout(max(self._left(), UNWIND)):
                await self._closing.aclose()
        except Exception as error:  # noqa: BLE001 - providers are user code
            told = failure.describe(error).text
            events.emit(events.SERVICE_ERROR, service="providers", error=told, expected=False)
        self._tell_counts()
        self._link.flush()
        await self._link.drained()

    def _assemble(
        self, begin: Begin, settings: Settings, engine: Engine, registry: Registry
    ) -> None:
        queues = offer.queues_of(begin, registry)
        self._recorder = Recorder(engine, self._runs)
        self._believed = settings.lease - margin(settings.lease)
        self._standstill = Standstill(settings.lease)
        self._patience = settings.lease / 3
        self._settler = Settler(
            engine,
            settings,
            on_settled=lambda numbers: self._link.say(Finished(numbers)),
            on_ended=lambda numbers: self._link.say(Ended(numbers)),
            on_forsaken=lambda numbers: self._link.say(Forsaken(numbers)),
            last_words=self._recorder.last_words,
        )
        self._placer = Placer(
            engine,
            on_placed=self._settler.add,
            on_forsaken=lambda numbers: self._link.say(Forsaken(numbers)),
        )
        self._hashes = {info.name: info.hash for info in registry.infos()}
        self._executor = Executor(
            middleware=registry.middleware,
            settings=settings,
            slots=begin.slots,
            link=self._link,
            pulse=self._pulse,
            on_end=self._ended,
            on_room=self._room_changed,
            provided=self._provided,
            vitals=None if begin.alone else self._vitals,
        )
        self._cancels = CancelListener(
            engine, self._executor, ask=lambda: self._link.say(AskCancels())
        )
        self._vitals.begin(asyncio.get_running_loop())
        self._starter = Starter(
            engine,
            wanted=lambda run: run.number in self._executor.marking,
            on_marked=self._executor.marked,
        )
        self._executor.mark = self._starter.add
        self._processes = self._make_processes(begin, settings) if begin.alone else None
        self._claimers = self._make_claimers(begin, settings, engine, registry, queues)
        self._settler.on_due = self._due_in
        if registry.hooks:
            self._settler.reporter = Reporter(registry.hooks)
        self._settler.tells = self._executor.tells = begin.events
        self._settler.counts = self._executor.counts = self._counts
        self._link.say(offer.hello(registry, queues, settings))

    def _runs(self) -> Iterable[Run]:
        return self._executor.running.values()

    def _make_claimers(
        self,
        begin: Begin,
        settings: Settings,
        engine: Engine,
        registry: Registry,
        queues: QueueStride,
    ) -> list[Claimer]:
        executor, numbers = self._executor, Numbers()
        kinds = Kinds(registry, executor.is_sentenced)
        return [
            Claimer(
                engine,
                settings,
                worker=begin.worker,
                registry=registry,
                types=types,
                requirements=requirements,
                queues=queues,
                executor=executor,
                bench=executor.alone if begin.alone else executor.shared,
                numbers=numbers,
                link=self._link,
                on_end=self._ended,
                is_kept=self._is_kept,
                way=self._way,
            )
            for types, requirements in offer.work_of(kinds, alone=begin.alone)
        ]

    def _make_processes(self, begin: Begin, settings: Settings) -> Slots:
        """Make the place for jobs that run alone; no process is started before one is needed."""
        executor = self._executor
        executor.alone.slots = process_slots(settings)
        executor.processes = processes = Slots(
            spec=begin.spec,
            settings=settings,
            path=begin.path,
            worker=begin.worker,
            limit=executor.alone.slots,
            on_end=executor.ended_alone,
            on_ready=executor.prepared,
            on_sent=executor.sent,
            may_begin=lambda run: self._pulse.check() <= run.vouched_at,
        )
        return processes

    async def _work(self) -> None:
        self._settler.start()
        self._placer.start()
        self._recorder.start()
        self._cancels.start()
        self._starter.start()
        beat = runtime.spawn(self._beat(), name="pulse", on_crash=self._crash)
        for claimer in self._claimers:
            claimer.start()
        await self._drain_at
        self._executor.close()
        await _within(_all(claimer.stop() for claimer in self._claimers), max(self._left(), UNWIND))
        await self._finish()
        self._ending = True
        beat.cancel()
        await self._cancels.stop()
        if self._processes is not None:
            await self._processes.close()
        await self._starter.stop()
        await self._recorder.stop()
        await self._placer.stop()
        await self._settler.stop()
        if self._settler.reporter is not None:
            await _within(self._settler.reporter.emptied(), max(self._left(), UNWIND))

    async def _beat(self) -> None:
        try:
            await self._pulse.beat(lambda: len(self._executor.running), self._tick)
        except asyncio.CancelledError:
            if not self._ending:
                self._crash(None)
            raise

    def _crash(self, error: BaseException | None) -> None:
        """End at once: without the pulse nothing here is stopped in time or kept from starting.

        Without an error it was cancelled, by a handler that cancels every task it finds.
        """
        told = "a handler cancelled tasks of its process, the pulse among them; it is replaced"
        trace = ""
        if error is not None:
            info = failure.describe(error)
            told, trace = f"the pulse died: {info.text}", info.traceback
        self._tell(events.SERVICE_ERROR, {"service": "pulse", "error": told, "expected": False})
        self._link.flush()
        with contextlib.suppress(Exception):
            sys.stderr.write(f"{told}\n{trace}")
        _exit(CRASHED)

    async def _finish(self) -> None:
        """Let handlers end within the grace, then tell them to, then write what there is."""
        while self._executor.running and (left := self._left()) > 0:
            # A second signal may shorten the time while we wait.
            await _within(self._executor.idle(), min(left, 0.1))
        self._executor.stop_all()
        await _within(self._executor.idle(), UNWIND)
        await _within(self._placer.emptied(), WRITE)
        await _within(self._settler.emptied(), WRITE)

    def _left(self) -> float:
        return self._deadline - runtime.boottime()

    # ── between the parts ────────────────────────────────────────────────────────────────────

    def _ended(self, run: Run, outcome: Outcome | None) -> None:
        if outcome is None:
            # Somebody else's now, or nobody's. Whether it was started must not be forgotten.
            self._link.say(Forsaken([run.number]))
        elif isinstance(outcome, Misfit) and outcome.error is not None:
            # No handler runs: there is no hard end, however long the store takes.
            self._link.say(Ended([run.number]))
            self._placer.add(run, outcome.error)
        else:
            self._settler.add(run, outcome)

    def _lose(self, numbers: list[int]) -> None:
        for number in numbers:
            run = self._executor.running.get(number)
            if run is not None and run.stop is not Stop.LOST:
                events.emit(events.LEASE_LOST, job_id=run.claim.job.id, verb="renew")
        if numbers:
            self._executor.stop(numbers, Stop.LOST)

    def _is_kept(self) -> bool:
        """Whether a supervisor is there to keep the leases of what would be claimed now.

        Not before it has answered our hello: until then we do not know what runs alone.
        """
        return runtime.boottime() - self._reassured_at < self._patience

    def _due_in(self, seconds: float) -> None:
        for claimer in self._claimers:
            claimer.due_in(seconds)

    def _room_changed(self) -> None:
        for claimer in self._claimers:
            claimer.room_changed()

    def _tick(self) -> None:
        # Our own loop may have stood still while the supervisor went on talking.
        self._link.read()
        woke_at = self._pulse.check()
        self._standstill.note(self._pulse.slept_at, woke_at)
        unkept = self._executor.unvouched(
            kept_since=self._kept_since,
            believed=self._believed,
            now=runtime.boottime(),
            is_excused=self._standstill.excuses,
        )
        if unkept:
            self._link.say(Unkept(unkept))
            self._lose(unkept)
        self._executor.tick()
        self._settler.report_slow()
        self._room_changed()
        self._tell_counts()

    def _tell_counts(self) -> None:
        counted = None if self._counts is None else self._counts.take()
        if counted is not None:
            self._link.say(counted)

    # ── with the supervisor ──────────────────────────────────────────────────────────────────

    def _hear(self, message: FromSupervisor) -> None:
        match message:
            case Begin():
                self._begun.set_result(message)
            case Cancel(numbers):
                self._cancels.found()
                self._executor.stop(numbers, Stop.CANCEL)
            case Lost(numbers):
                self._settler.lose(numbers)
                self._placer.lose(numbers)
                self._lose(numbers)
            case Kept(since):
                self._kept_since = max(self._kept_since, since)
                self._reassured_at = runtime.boottime()
                self._room_changed()
            case Yours(numbers):
                asked, asked_at = self._pulse.answered()
                self._executor.confirm(asked, numbers, asked_at)
            case Isolate(types):
                self._executor.isolate(types)
            case Slot(slot, hashes):
                self._meet(slot if hashes == self._hashes else 0)
            case MakeWay(seconds):
                self._way.make(seconds)
            case Drain(grace):
                self._drain(runtime.boottime() + grace)

    def _drain(self, deadline: float) -> None:
        if self._drain_at.done():
            self._deadline = min(self._deadline, deadline)
        else:
            self._deadline = deadline
            self._drain_at.set_result(None)

    def _meet(self, slot: int) -> None:
        for claimer in self._claimers:
            claimer.meet(slot)

    def _tell(self, name: str, fields: Mapping[str, Any]) -> None:
        if name not in _OWN and (self._wants_events or name not in _FREQUENT):
            self._link.say(Told(name, dict(fields)))

    async def _break(self, error: Exception) -> None:
        self._link.say(failure.broken(error))
        self._link.flush()
        await self._link.drained()


async def _all(works: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*works)


async def _within(work: Awaitable[None], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work, seconds)


def _vanish() -> None:
    """End at once: the supervisor is gone, and nobody keeps our leases."""
    command.kill_all()
    os._exit(1)


def _exit(code: int) -> NoReturn:
    command.kill_all()
    outlet.flush()
    os._exit(code)


def _die_with_parent(parent: int) -> None:
    """Ask the system to kill us when the supervisor dies; elsewhere the closed line tells."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main(arguments: list[str]) -> int:
    """Run as a process."""
    descriptor, parent = int(arguments[0]), int(arguments[1])
    outlet.install()
    _die_with_parent(parent)
    os.set_inheritable(descriptor, False)
    leave_to_supervisor()
    vitals = Vitals(SIGNALS)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(_main(descriptor, vitals))
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt):
                # Raised in some task of a handler; asyncio lets these two out of the loop.
                continue
            except RuntimeError:
                if task.done():
                    raise
                # All others go on in it as if nothing had been.
                vitals.note("a handler stopped the event loop")
            except OSError as error:
                sys.stderr.write(f"the event loop is broken, as its descriptors are: {error}\n")
                _exit(CRASHED)
        # Threads of handlers that never return must not keep the process alive.
        _exit(task.result())


async def _main(descriptor: int, vitals: Vitals) -> int:
    return await Child(socket.socket(fileno=descriptor), vitals).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
