"""A slot process as its child sees it: a process, a line to it, and the one run it has."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.isolation import Surroundings
from lamplighter.model.outcome import AbandonCause, Abandoned, Outcome
from lamplighter.observability import events
from lamplighter.worker import descendants, failure, slot_line
from lamplighter.worker.cgroup import Group, Groups
from lamplighter.worker.link import Broken
from lamplighter.worker.notebook import Relay
from lamplighter.worker.run import Run, Stop
from lamplighter.worker.slot import SIGNAL
from lamplighter.worker.slot_line import Begin, ChildEnd, Done, FromSlot, Halt, Noted, Ready

WORDS = 16 * 1024
"""Bytes that are kept of what a dying process says."""
BURIAL = 1.0
"""Seconds that the descendants of a dead process are looked for before its job goes on."""

HANG_UP = 1.0
"""Seconds after which a process is killed that has closed its line, but lives."""

_RELATIVE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Plan:
    """What every slot process of a child is told."""

    spec: str
    settings: Settings
    path: list[str]
    worker: str

    def begin(self, surroundings: Surroundings, *, grouped: bool) -> Begin:
        """Say it to a process, which may work in another folder than we do."""
        settings = dataclasses.asdict(self.settings)
        url = self.settings.url
        if url.startswith(_RELATIVE):
            settings["url"] = _RELATIVE + str(Path(url.removeprefix(_RELATIVE)).absolute())
        here = str(Path.cwd())
        path = [here if entry in {"", "."} else entry for entry in self.path]
        return Begin(self.spec, settings, path, surroundings, grouped)


class Killed(Enum):
    """Why we have killed a process."""

    OVERDUE = "overdue"
    """Its run was past the hard end."""
    LOST = "lost"
    """Its run is somebody else's."""
    CLOSING = "closing"
    """Its child ends."""
    SILENT = "silent"
    """It has closed its line, or not become ready in time."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Whom the messages of a process concern."""

    on_ready: Callable[[SlotProcess], None]
    on_done: Callable[[SlotProcess, Run, Outcome | None], None]


class SlotProcess:
    """One slot process, from its start to its burial."""

    def __init__(
        self, plan: Plan, surroundings: Surroundings, groups: Groups | None, hooks: Hooks
    ) -> None:
        self.surroundings = surroundings
        self.run: Run | None = None
        """The run it has, or will have as soon as it is ready."""
        self.ready = False
        self.broken: Broken | None = None
        self.killed: Killed | None = None
        self.retired_at: float | None = None
        """When it was told to end."""
        self.born_at = runtime.boottime()
        self.idle_since = self.born_at
        self.jobs = 0
        self.rss = 0
        self.spent = False
        """Its last run has changed what the next one would meet."""
        self.status: int | None = None
        self.last_words = ""
        self.out_of_memory = False
        self._halted = False
        self._token = runtime.nonce()
        self._plan = plan
        self._groups = groups
        self._group: Group | None = None
        self._hooks = hooks
        self._link: ChildEnd | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._words = -1

    @property
    def pid(self) -> int:
        """Number of the process, 0 before it runs."""
        return 0 if self._process is None else self._process.pid

    async def live(self) -> None:
        """Start it, wait for its end, and end all that it has started."""
        try:
            await self._start()
        except Exception as error:  # noqa: BLE001 - whatever it is, its job must not wait for ever
            told = failure.broken(error)
            cause = f"no process can be started: {failure.describe(error).text}"
            hint = f"look whether the worker's Python, {sys.executable}, is there and may be run"
            self.broken = Broken(told.code, cause, hint)
            self.kill(Killed.SILENT)
        if self._process is not None:
            self.status = await self._process.wait()
            await self._bury()

    async def _start(self) -> None:
        """Start a fresh interpreter: nothing of ours is forked into it.

        On the loop's thread: the system would take the end of another one for our death.
        """
        ours, theirs = socket.socketpair()
        self._words, words = os.pipe()
        os.set_blocking(self._words, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "lamplighter.worker.slot",
                str(theirs.fileno()),
                str(words),
                str(os.getpid()),
                self._plan.spec,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), words),
                env={
                    **os.environ,
                    **dict(self.surroundings.env),
                    descendants.CHILD: self._plan.worker,
                    descendants.SLOT: self._token,
                },
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            os.close(self._words)
            raise
        finally:
            theirs.close()
            os.close(words)
        self._link = ChildEnd(ours, self._hear, self._hung_up)
        if self.killed is not None:
            self.kill(self.killed)
        if self._groups is not None:
            self._join(self._groups, self._process.pid)
        self._link.post(self._plan.begin(self.surroundings, grouped=self._group is not None))

    def _join(self, groups: Groups, pid: int) -> None:
        """Put it into a control group before it does anything; without one it has its limits."""
        try:
            self._group = groups.make(self.surroundings.limits)
            self._group.add(pid)
        except OSError as error:
            told = f"a process runs without a control group: {error}"
            events.emit(events.SERVICE_ERROR, service="slots", error=told, expected=True)
            if self._group is not None:
                self._group.remove()
                self._group = None

    # ── the run ──────────────────────────────────────────────────────────────────────────────

    def do(self, run: Run) -> None:
        """Hand it its run."""
        self._halted = False
        # What the system has refused for good was never seen by a process that is dead already.
        run.entered = self._link is not None and (
            self._link.post(slot_line.do(run)) or self._link.congested
        )

    def halt(self, run: Run, why: Stop) -> None:
        """Tell it to bring its run to an end; once is enough."""
        if self._halted or self._link is None:
            return
        self._halted = True
        if self._link.post(Halt(run.number, why, run.soft_end - run.started_at)):
            self._call()
        else:
            runtime.spawn(self._call_when_drained(run), name="halt")

    async def _call_when_drained(self, run: Run) -> None:
        if self._link is not None:
            await self._link.drained()
        if self.run is run:
            self._call()

    def _call(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(SIGNAL)

    def _hear(self, message: FromSlot) -> None:
        run = self.run
        match message:
            case Done() if run is not None and run.number == message.number:
                self.jobs += 1
                self.rss = message.rss
                self.spent = message.spent
                self.run = None
                if message.journal is not None:
                    _note(run, message)
                self._hooks.on_done(self, run, slot_line.outcome_of(message))
            case Noted() if run is not None and run.number == message.number:
                _note(run, message)
            case Ready():
                self.ready = True
                self._hooks.on_ready(self)
            case Broken():
                self.broken = message
            case _:
                # Of a run that was taken from it.
                pass

    def _hung_up(self) -> None:
        # Mostly it is about to die, and should not look as if we had killed it.
        asyncio.get_running_loop().call_later(HANG_UP, self.kill, Killed.SILENT)

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def retire(self) -> None:
        """Let it end by itself."""
        self.retired_at = runtime.boottime()
        if self._link is None:
            self.kill(Killed.CLOSING)
        else:
            self._link.close()

    def kill(self, why: Killed) -> None:
        """End it and all that it has started, now. A first reason stands."""
        if self.status is not None:
            return
        self.killed = self.killed or why
        if self._group is not None:
            self._group.kill()
        if self._process is not None:
            descendants.kill_group(self._process.pid)

    async def _bury(self) -> None:
        """Take in its last words, and end what it has left behind."""
        descendants.kill_group(self.pid)
        if self._group is not None:
            self.out_of_memory = self._group.ran_out_of_memory
            self._group.kill()
        if self._link is not None:
            # What its run came to may stand in there: then it counts.
            self._link.read()
        # RuntimeError: there is no thread for it; then the group has to do.
        with contextlib.suppress(TimeoutError, RuntimeError):
            await asyncio.wait_for(asyncio.to_thread(self._sweep), BURIAL)
        if self._link is not None:
            self._link.read()
            self._link.close()
            if self.run is not None and self._link.unread and not self._halted:
                # It was dying when the job was sent, and has never seen it.
                self.run.entered = False
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._words, WORDS).decode(errors="replace")
            self.last_words = failure.printable(said.rstrip(), WORDS)
        os.close(self._words)

    def _sweep(self) -> None:
        descendants.kill_marked(f"{descendants.SLOT}={self._token}")
        if self._group is not None:
            self._group.remove()

    @property
    def lacks_room(self) -> bool:
        """Whether it could not start for lack of what the machine has, and no limit has set."""
        if self.surroundings.limits.given():
            return self.broken is not None and self.broken.code == failure.NO_ROOM and not self.pid
        if self.broken is not None:
            return self.broken.code == failure.NO_ROOM
        # The system kills for lack of memory.
        return self.killed is None and self.status == -signal.SIGKILL

    def crash(self) -> Abandoned:
        """Say how it died, when it was not by us."""
        return Abandoned(AbandonCause.CRASHED_ALONE, how=self._how(), last_words=self.last_words)

    def _how(self) -> str:
        status, limits = self.status or 0, self.surroundings.limits
        if self.killed is Killed.SILENT and -status == signal.SIGKILL:
            return "it closed its line to the worker and was killed"
        if status >= 0:
            return f"ended with code {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "unknown"
        how = f"killed by signal {-status} ({name})"
        if self.out_of_memory:
            return f"{how}: it reached its memory limit of {limits.memory_mb} MB"
        if -status == signal.SIGXCPU:
            return f"{how}: it used up its {limits.cpu_seconds} s of CPU time"
        if -status == signal.SIGKILL:
            return f"{how}, perhaps for lack of memory"
        return how


def _note(run: Run, message: Noted | Done) -> None:
    """Pass on what the run has said."""
    if message.journal is None:
        return
    if not isinstance(run.notes, Relay):
        run.notes = Relay()
    run.notes.put(message.journal)
    if message.journal.progress is not None:
        run.progressed_at = runtime.boottime()
