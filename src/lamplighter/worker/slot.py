"""The process that runs one job at a time, and nothing beside it.

Started by a child as ``python -m lamplighter.worker.slot LINE WORDS PARENT NAME``: a socket to the
child, a pipe for the last words of a dying interpreter, and who the child is. The main thread
waits for a job, runs it, says what it came to, and waits again. To stop a job the child writes why
and sends a signal; only in the midst of a handler does that signal raise something.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import FrameType
from typing import Any, NoReturn, cast

from lamplighter import command, runtime, secrecy
from lamplighter.config import Settings
from lamplighter.context import CancelRequested, Context, TimedOut
from lamplighter.middleware import call_through
from lamplighter.model.errors import InvalidOption, LamplighterError
from lamplighter.model.names import shown
from lamplighter.model.outcome import Abandoned, Failed, Outcome
from lamplighter.observability import logs, outlet
from lamplighter.registry import Registry
from lamplighter.worker import capture, descendants, failure, limits, outcomes
from lamplighter.worker.driving import driven
from lamplighter.worker.link import Broken
from lamplighter.worker.load import Borrower, load, registry_of
from lamplighter.worker.notebook import Notebook
from lamplighter.worker.run import Notes, Run, Stop
from lamplighter.worker.signals import SIGNALS, leave_to_supervisor
from lamplighter.worker.slot_line import (
    Begin,
    Do,
    Halt,
    Noted,
    Ready,
    SlotEnd,
    claim_of,
    done,
)
from lamplighter.worker.subject import subject
from lamplighter.worker.vitals import Vitals

SIGNAL = signal.SIGUSR2
"""Tells that a halt was written to the line."""
NEWS = 0.5
"""Seconds between two reports of what a running handler says."""
CLOSE = 5.0
"""Seconds that providers have to close."""
BROKEN = 3
"""Exit code of a process that could not start, or not run a job; it has said why."""
CRASHED = 4
"""Exit code of a process that failed by itself."""

_STACK = 256 * 1024
"""Bytes of stack for our own threads: with a limit of memory the usual ones are dear."""


class Slot:
    """One process, from its start to its end."""

    def __init__(self, line: SlotEnd) -> None:
        self._line = line
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._registry = Registry()
        self._provided: Mapping[object, object] = {}
        self._spared: frozenset[int] = frozenset()
        """Processes that were there before the first job, as those of providers."""
        self._cpu_seconds: int | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._run: Run | None = None
        self._inside = False
        """The main thread is in a plain handler, so that raising there is seen inside."""
        self._task: asyncio.Task[Any] | None = None
        """The task of a handler that runs on the loop."""
        self._called = False
        """The signal has come while there was nothing to stop."""
        self._sending = threading.Lock()
        """Held from taking news to sending them, so that none comes after the end of its run."""
        self._spoke = threading.Event()
        self._never = threading.Event()
        self._statm = _open_statm()
        self._vitals = Vitals((*SIGNALS, SIGNAL))

    def run(self) -> int:
        """Live; gives the exit code."""
        begin = self._line.next()
        if not isinstance(begin, Begin):
            return 0
        try:
            self._prepare(begin)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the child has to tell it
            return self._break(error)
        self._say(Ready())
        while (message := self._line.next()) is not None:
            # A halt that is read here came too late for its run.
            if isinstance(message, Do):
                try:
                    self._perform(message)
                except LamplighterError as error:
                    return self._break(error)
        self._close()
        return 0

    # ── begin and end ────────────────────────────────────────────────────────────────────────

    def _prepare(self, begin: Begin) -> None:
        wanted = begin.surroundings
        limits.apply(wanted.limits, grouped=begin.grouped)
        self._cpu_seconds = wanted.limits.cpu_seconds
        sys.path[:] = begin.path
        capture.install_streams()
        program = load(begin.spec)
        capture.install()
        settings = Settings(**begin.settings)
        logs.install(settings.log_format, subject)
        self._registry = registry_of(program, begin.spec)
        if isinstance(program, Borrower):
            # Opened when a handler first submits something: most never do.
            program.configure(settings)
        self._registry.check()
        if wanted.cwd is not None:
            _enter(wanted.cwd)
        asyncio.set_event_loop(self._loop)
        self._provided = self._loop.run_until_complete(self._open())
        self._spared = frozenset(descendants.children())
        signal.signal(SIGNAL, self._interrupt)
        _start_thread(self._report, "news")
        self._vitals.begin(self._loop)

    async def _open(self) -> Mapping[object, object]:
        """Make what is provided, in a task that will close it, too."""
        opened: asyncio.Future[Mapping[object, object]] = self._loop.create_future()
        self._keeper = self._loop.create_task(self._keep(opened))
        await asyncio.wait([self._keeper, opened], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            self._keeper.result()
        return opened.result()

    async def _keep(self, opened: asyncio.Future[Mapping[object, object]]) -> None:
        async with self._registry.providers.opened() as provided:
            opened.set_result(provided)
            await self._ending.wait()

    def _close(self) -> None:
        """Close what was provided; its failure cannot change any outcome now."""
        if self._keeper is None or self._keeper.done():
            return
        self._ending.set()
        try:
            closing = self._loop.create_task(_within(self._keeper, CLOSE))
            self._drive(closing)
            closing.result()
        except BaseException as error:  # noqa: BLE001 - providers are user code
            info = failure.describe(error)
            with contextlib.suppress(Exception):
                sys.stderr.write(f"a provider could not be closed: {info.text}\n")

    def _break(self, error: BaseException) -> int:
        self._say(failure.broken(error))
        return BROKEN

    def _say(self, message: Ready | Broken) -> None:
        with contextlib.suppress(OSError):
            self._line.send(self._line.encode(message))

    # ── one job ──────────────────────────────────────────────────────────────────────────────

    def _perform(self, message: Do) -> None:
        claim, now = claim_of(message), runtime.boottime()
        # Unknown here and known to the child: the program was replaced since. Raises.
        job_type = self._registry.get(claim.job.type)
        run = Run(message.number, claim, job_type, message.timeout, now, started_at=now)
        run.make_notes = self._make_notes
        if job_type.secrets or claim.job.extras.secrets:
            secrets = {*job_type.secrets, *claim.job.extras.secrets}
            run.redact = secrecy.redactor(claim.job.args, secrets)
        if self._cpu_seconds is not None:
            limits.allow_cpu(self._cpu_seconds)
        self._run = run
        with capture.speaking(run):
            outcome = self._outcome(run)
        if os.getpid() != self._pid:
            # The handler forked, and the copy came back from it as well.
            os._exit(0)
        descendants.kill_children(self._spared)
        self._finish(run, outcome)

    def _outcome(self, run: Run) -> Outcome | None:
        try:
            arguments = run.type.decode(run.claim.job.args)
            if run.type.needs:
                arguments.update(run.type.fill(self._provided))
        except BaseException as error:  # noqa: BLE001 - models validate with foreign code
            return outcomes.unreadable(run, error)
        if run.type.is_async or self._registry.middleware:
            return self._turn(run, self._around(run, arguments))
        return self._call(run, arguments)

    def _call(self, run: Run, arguments: dict[str, Any]) -> Outcome | None:
        """Run a function; every end of it is an outcome."""
        run.entered = True
        try:
            try:
                self._inside = True
                if self._called:
                    self._heed()
                if run.type.wants_context:
                    value = run.type.function(Context.of(run.claim, run, run), **arguments)
                else:
                    value = run.type.function(**arguments)
            finally:
                self._inside = False
            return outcomes.returned(run, value)
        except BaseException as error:  # noqa: BLE001 - no handler may end its process
            return outcomes.raised(run, error)

    def _turn(self, run: Run, work: Coroutine[Any, Any, Outcome | None]) -> Outcome | None:
        """Turn the loop until the work is done."""
        came_to: list[Outcome | None] = []

        async def keep() -> None:
            came_to.append(await work)

        task = self._loop.create_task(keep())
        self._drive(task)
        if self._keeper is not None and self._keeper.done():
            self._vitals.note("the handler cancelled all tasks of its process")
        if came_to:
            # Whatever the handler has done to the task, such as cancel every one it finds.
            return came_to[0]
        error = None if task.cancelled() else task.exception()
        return outcomes.raised(run, error or asyncio.CancelledError())

    def _drive(self, task: asyncio.Task[None]) -> None:
        """Turn the loop until a task is done, though a handler may stop it."""
        while not task.done():
            try:
                self._loop.run_until_complete(task)
            except RuntimeError:
                if not task.done():
                    self._vitals.note("the handler stopped the event loop")
            except BaseException:  # noqa: BLE001, S110 - the task has it, or a handler raised it
                # asyncio lets SystemExit and KeyboardInterrupt of any task out of the loop.
                pass

    async def _around(self, run: Run, arguments: dict[str, Any]) -> Outcome | None:
        """Run a handler of either kind on the loop, inside of the middleware."""
        self._task = asyncio.current_task()
        run.entered = True
        try:
            if self._called:
                self._heed()
            if not self._registry.middleware:
                return await self._await(run, arguments)
            return await call_through(
                self._registry.middleware,
                run.claim,
                lambda: self._inner(run, arguments),
                lambda error: outcomes.raised(run, error) or Abandoned(),
            )
        finally:
            self._vitals.mend_loop()
            self._task = None

    async def _inner(self, run: Run, arguments: dict[str, Any]) -> Outcome:
        if run.type.is_async:
            return await self._await(run, arguments) or Abandoned()
        # A plain function may use a loop of its own, and wait for the store, as in a thread.
        asyncio._set_running_loop(None)  # noqa: SLF001
        try:
            return self._call(run, arguments) or Abandoned()
        finally:
            asyncio._set_running_loop(self._loop)  # noqa: SLF001

    async def _await(self, run: Run, arguments: dict[str, Any]) -> Outcome | None:
        """Run a coroutine; every end of it is an outcome."""
        function = cast("Callable[..., Awaitable[Any]]", run.type.function)
        try:
            if run.type.wants_context:
                coroutine = function(Context.of(run.claim, run, run), **arguments)
            else:
                coroutine = function(**arguments)
            return outcomes.returned(run, await driven(run, cast("Any", coroutine)))
        except BaseException as error:  # noqa: BLE001 - no handler may end its process
            return outcomes.raised(run, error)

    def _finish(self, run: Run, outcome: Outcome | None) -> None:
        with self._sending:
            self._run = None
            journal = None if run.notes is None else run.notes.take(last=True)
            rss, spent = self._rss(), bool(self._vitals.harm())
            try:
                frame = self._line.encode(done(run.number, outcome, journal, rss, spent=spent))
            except Exception as error:  # noqa: BLE001 - middleware makes outcomes of anything
                failed = Failed(failure.describe(error))
                frame = self._line.encode(done(run.number, failed, journal, rss, spent=spent))
            self._line.send(frame)

    def _rss(self) -> int:
        try:
            pages = os.pread(self._statm, 64, 0).split()[1]
        except (OSError, IndexError):
            # Elsewhere only the highest is known; a handler may have closed all descriptors, too.
            unit = 1 if sys.platform == "darwin" else 1024
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return int(pages) * resource.getpagesize()

    # ── stop ─────────────────────────────────────────────────────────────────────────────────

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._inside:
            self._heed()
        else:
            self._called = True
            if self._task is not None:
                self._loop.call_soon_threadsafe(self._heed)

    def _heed(self) -> None:
        """Read why we were called."""
        self._called = False
        while (halt := self._line.halt()) is not None:
            self._stop(halt)

    def _stop(self, halt: Halt) -> None:
        run = self._run
        if run is None or run.number != halt.number or run.stop is not None:
            return
        run.soft_end = run.started_at + halt.soft_in
        run.stop = halt.why
        if isinstance(run.type, command.CommandType) and self._inside:
            # It looks at the flag by itself, and lets its program end in peace.
            return
        if self._inside:
            self._inside = False
            kind = TimedOut if halt.why is Stop.TIMEOUT else CancelRequested
            raise kind(run.claim.job.id)
        if self._task is not None:
            self._task.cancel()

    # ── what the handler says ────────────────────────────────────────────────────────────────

    def _make_notes(self, run: Run) -> Notes:
        self._spoke.set()
        return Notebook.of(run)

    def _report(self) -> None:
        """Send what handlers say while they run. Sleeps as long as they say nothing."""
        # OSError: the child is gone, and so are we.
        with contextlib.suppress(OSError):
            while True:
                self._spoke.wait()
                self._spoke.clear()
                while (run := self._run) is not None and run.notes is not None:
                    self._never.wait(NEWS)
                    self._send_news(run, run.notes)

    def _send_news(self, run: Run, notes: Notes) -> None:
        with self._sending:
            if self._run is run and (journal := notes.take()) is not None:
                self._line.send(self._line.encode(Noted(run.number, journal)))


async def _within(task: asyncio.Task[None], seconds: float) -> None:
    await asyncio.wait_for(task, seconds)


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise InvalidOption(
            f"the folder {shown(folder)} cannot be entered where the worker runs: {error.strerror}",
            hint="create it there, or correct `cwd` of the job type",
            value=folder,
        ) from error


def _open_statm() -> int:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return -1


def _start_thread(target: Callable[[], None], name: str) -> None:
    before = threading.stack_size(_STACK)
    try:
        threading.Thread(target=target, name=name, daemon=True).start()
    finally:
        threading.stack_size(before)


def _die_with_parent(parent: int) -> None:
    """Have the system kill us when the child dies; elsewhere we look after it ourselves."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    else:

        def watch() -> None:
            while os.getppid() == parent:
                threading.Event().wait(1.0)
            _exit(1)

        _start_thread(watch, "parent")
    if os.getppid() != parent:
        os._exit(1)


def _exit(code: int) -> NoReturn:
    command.kill_all()
    descendants.kill_children(())
    outlet.flush()
    os._exit(code)


def main(arguments: list[str]) -> NoReturn:
    """Run as a process."""
    line, words, parent = map(int, arguments[:3])
    outlet.install()
    _die_with_parent(parent)
    descendants.adopt_orphans()
    for descriptor in (line, words):
        os.set_inheritable(descriptor, False)
    # A full pipe must not keep a dying process from dying.
    os.set_blocking(words, False)
    faulthandler.enable(words)
    faulthandler.register(signal.SIGXCPU, words, chain=True)
    leave_to_supervisor()
    code = CRASHED
    try:
        code = Slot(SlotEnd(socket.socket(fileno=line))).run()
    except BrokenPipeError:
        # The child is gone: nobody wants to know.
        pass
    except OSError as error:
        sys.stderr.write(
            f"the line to the worker is broken, perhaps closed by a handler: {error}\n"
        )
    except BaseException:  # noqa: BLE001 - what is ours must not look like an end of the job's
        traceback.print_exc()
    _exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
