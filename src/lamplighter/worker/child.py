"""The process that runs jobs: claims and settles on its own connection, reports all it does.

Started by the supervisor as ``python -m lamplighter.worker.child FD PARENT NAME``.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import inf
from types import FrameType
from typing import Any, NoReturn

from lamplighter import command, runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.model.errors import LamplighterError, ProviderFailed
from lamplighter.model.job import ALONE
from lamplighter.model.outcome import Outcome
from lamplighter.model.retry import Retry
from lamplighter.model.stride import QueueStride
from lamplighter.observability import calls, events, logs
from lamplighter.port.store import Engine
from lamplighter.registry import Registry
from lamplighter.worker import capture, failure, limits
from lamplighter.worker.bench import Numbers, process_slots
from lamplighter.worker.claimer import Claimer
from lamplighter.worker.counting import Counts
from lamplighter.worker.executor import Executor
from lamplighter.worker.kinds import Kinds
from lamplighter.worker.link import (
    Begin,
    Broken,
    Cancel,
    Drain,
    Ended,
    Finished,
    Forsaken,
    FromSupervisor,
    Hello,
    Isolate,
    Kept,
    Link,
    Lost,
    MakeWay,
    Told,
    Unkept,
    Yours,
    child_end,
)
from lamplighter.worker.load import Borrower, load, registry_of
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.recorder import Recorder
from lamplighter.worker.reporter import Reporter
from lamplighter.worker.run import Run, Stop, margin
from lamplighter.worker.rush import Way
from lamplighter.worker.settler import Settler
from lamplighter.worker.slots import Slots
from lamplighter.worker.subject import subject

BROKEN = 3
"""Exit code of a child that could not start; it has said why."""
CRASHED = 4
"""Exit code of a child a vital part of which died."""

UNWIND = 1.0
"""Time that handlers get to react when they are told to stop for good."""
WRITE = 5.0
"""Time that the last settlements get."""

_FREQUENT = frozenset({events.JOB_CLAIMED, events.JOB_STARTED, events.JOB_SETTLED})
"""Told only when somebody asked for events; the others always are."""
_OWN = frozenset({events.STORE_CALL})
"""Never told: they concern this process alone."""


class Child:
    """The parts of a child, wired to each other and to the supervisor."""

    def __init__(self, sock: socket.socket) -> None:
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
            await engine.open()
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
            info = failure.describe(error)
            told = f"{info.type}: {info.message}"
            events.emit(events.SERVICE_ERROR, service="providers", error=told, expected=False)
        self._tell_counts()
        self._link.flush()
        await self._link.drained()

    def _assemble(
        self, begin: Begin, settings: Settings, engine: Engine, registry: Registry
    ) -> None:
        queues = _queues(begin, registry)
        self._recorder = Recorder(engine, self._runs)
        self._believed = settings.lease - margin(settings.lease)
        self._patience = settings.lease / 3
        self._settler = Settler(
            engine,
            settings,
            on_settled=lambda numbers: self._link.say(Finished(numbers)),
            on_ended=lambda numbers: self._link.say(Ended(numbers)),
            on_forsaken=lambda numbers: self._link.say(Forsaken(numbers)),
            last_words=self._recorder.last_words,
        )
        self._executor = Executor(
            middleware=registry.middleware,
            settings=settings,
            slots=begin.slots,
            link=self._link,
            pulse=self._pulse,
            on_end=self._ended,
            on_room=self._room_changed,
            provided=self._provided,
        )
        self._processes = self._make_processes(begin, settings) if begin.alone else None
        kinds, numbers = Kinds(registry, self._executor.is_sentenced), Numbers()
        self._claimers = [
            Claimer(
                engine,
                settings,
                worker=begin.worker,
                registry=registry,
                types=types,
                requirements=requirements,
                queues=queues,
                executor=self._executor,
                bench=self._executor.alone if begin.alone else self._executor.shared,
                numbers=numbers,
                link=self._link,
                on_end=self._ended,
                is_kept=self._is_kept,
                way=self._way,
            )
            for types, requirements in (_lone_work if begin.alone else _shared_work)(kinds)
        ]
        if registry.hooks:
            self._settler.reporter = Reporter(registry.hooks)
        self._settler.tells = self._executor.tells = begin.events
        self._settler.counts = self._executor.counts = self._counts
        self._link.say(_hello(registry, queues))

    def _runs(self) -> Iterable[Run]:
        return self._executor.running.values()

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
            on_sent=executor.sent,
            may_begin=lambda run: self._pulse.check() <= run.vouched_at,
        )
        return processes

    async def _work(self) -> None:
        self._settler.start()
        self._recorder.start()
        beat = runtime.spawn(self._beat(), name="pulse", on_crash=self._crash)
        for claimer in self._claimers:
            claimer.start()
        await self._drain_at
        self._executor.close()
        await _within(_all(claimer.stop() for claimer in self._claimers), max(self._left(), UNWIND))
        await self._finish()
        self._ending = True
        beat.cancel()
        if self._processes is not None:
            await self._processes.close()
        await self._recorder.stop()
        await self._settler.stop()
        if self._settler.reporter is not None:
            await _within(self._settler.reporter.emptied(), max(self._left(), UNWIND))

    async def _beat(self) -> None:
        try:
            await self._pulse.beat(lambda: len(self._executor.running), self._tick)
        except asyncio.CancelledError as error:
            if not self._ending:
                # Not by us: a handler that cancels whatever it finds.
                self._crash(error)
            raise

    def _crash(self, error: BaseException) -> None:
        """End at once: without the pulse nothing here is stopped in time or kept from starting."""
        info = failure.describe(error)
        told = f"the pulse died: {info.type}: {info.message}"
        self._tell(events.SERVICE_ERROR, {"service": "pulse", "error": told, "expected": False})
        self._link.flush()
        with contextlib.suppress(Exception):
            sys.stderr.write(f"{told}\n{info.traceback}")
        _exit(CRASHED)

    async def _finish(self) -> None:
        """Let handlers end within the grace, then tell them to, then write what there is."""
        while self._executor.running and (left := self._left()) > 0:
            # A second signal may shorten the time while we wait.
            await _within(self._executor.idle(), min(left, 0.1))
        self._executor.stop_all()
        await _within(self._executor.idle(), UNWIND)
        await _within(self._settler.emptied(), WRITE)

    def _left(self) -> float:
        return self._deadline - runtime.boottime()

    # ── between the parts ────────────────────────────────────────────────────────────────────

    def _ended(self, run: Run, outcome: Outcome | None) -> None:
        if outcome is None:
            # Somebody else's now, or nobody's. Whether it was started must not be forgotten.
            self._link.say(Forsaken([run.number]))
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

    def _room_changed(self) -> None:
        for claimer in self._claimers:
            claimer.room_changed()

    def _tick(self) -> None:
        # Our own loop may have stood still while the supervisor went on talking.
        self._link.read()
        unkept = self._executor.unvouched(
            kept_since=self._kept_since, believed=self._believed, now=runtime.boottime()
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
                self._executor.stop(numbers, Stop.CANCEL)
            case Lost(numbers):
                self._settler.lose(numbers)
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
            case MakeWay(seconds):
                self._way.make(seconds)
            case Drain(grace):
                deadline = runtime.boottime() + grace
                if self._drain_at.done():
                    self._deadline = min(self._deadline, deadline)
                else:
                    self._deadline = deadline
                    self._drain_at.set_result(None)

    def _tell(self, name: str, fields: Mapping[str, Any]) -> None:
        if name not in _OWN and (self._wants_events or name not in _FREQUENT):
            self._link.say(Told(name, dict(fields)))

    async def _break(self, error: Exception) -> None:
        if isinstance(error, LamplighterError):
            cause = error.cause
            if isinstance(error, ProviderFailed) and error.__cause__ is not None:
                cause += f"\n\n{failure.describe(error.__cause__).traceback}"
            self._link.say(Broken(error.code, cause, error.hint))
        else:
            info = failure.describe(error)
            self._link.say(Broken("error", info.traceback or info.message, ""))
        self._link.flush()
        await self._link.drained()


Work = tuple[Callable[[], tuple[str, ...]], tuple[str, ...]]
"""Types to claim, and the requirements that are met."""


def _shared_work(kinds: Kinds) -> list[Work]:
    return [(kinds.shared, ("",))]


def _lone_work(kinds: Kinds) -> list[Work]:
    # Suspects of types that share a process have a way of their own: no backlog is before them.
    return [(kinds.alone, ("", ALONE)), (kinds.shared, (ALONE,))]


def _hello(registry: Registry, queues: QueueStride) -> Hello:
    retries: dict[str, str] = {}
    for name in registry.names():
        retry = registry.get(name).retry
        if retry.function is not None:
            # Functions do not travel; the number of attempts does.
            retry = Retry(max_attempts=retry.max_attempts, no_retry_on=retry.no_retry_on)
        retries[name] = retry.to_json()
    types = tuple(dataclasses.asdict(info) for info in registry.infos())
    return Hello(os.getpid(), queues.queues, types, retries)


def _queues(begin: Begin, registry: Registry) -> QueueStride:
    """Give the queues asked for, or all queues of the program's types, each with equal right."""
    if begin.queues:
        return QueueStride(begin.queues, begin.weights)
    names = tuple(sorted({registry.get(name).queue for name in registry.names()} | {"default"}))
    return QueueStride(names, None if len(names) == 1 else (1,) * len(names))


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
    for stream in (sys.stdout, sys.stderr):
        # A handler may have closed it, or whoever read it has gone.
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def _die_with_parent(parent: int) -> None:
    """Ask the system to kill us when the supervisor dies; elsewhere the closed line tells."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _leave_it_to_the_supervisor(_number: int, _frame: FrameType | None) -> None:
    pass


def main(arguments: list[str]) -> int:
    """Run as a process."""
    descriptor, parent = int(arguments[0]), int(arguments[1])
    _die_with_parent(parent)
    os.set_inheritable(descriptor, False)
    for number in (signal.SIGINT, signal.SIGTERM):
        # The supervisor decides. A handler, unlike "ignore", is not inherited by programs we run.
        signal.signal(number, _leave_it_to_the_supervisor)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(_main(descriptor))
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt):
                # Raised in some task of a handler; asyncio lets these two out of the loop.
                continue
        # Threads of handlers that never return must not keep the process alive.
        _exit(task.result())


async def _main(descriptor: int) -> int:
    return await Child(socket.socket(fileno=descriptor)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
