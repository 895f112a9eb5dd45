"""A child as its supervisor sees it: a process, a line to it, and the ledger of its claims."""

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
from math import inf

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.stride import QueueStride
from lamplighter.worker import descendants
from lamplighter.worker.ledger import Ledger
from lamplighter.worker.link import (
    Begin,
    Broken,
    Claimed,
    Convicted,
    Drain,
    Ended,
    Extended,
    Finished,
    Forsaken,
    FromChild,
    Hello,
    Kept,
    Link,
    Lost,
    Message,
    Resync,
    Started,
    Tick,
    Told,
    supervisor_end,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What every child of a worker is told."""

    spec: str
    settings: Settings
    slots: int
    queues: QueueStride | None
    events: bool
    alone: bool = False
    """Its jobs run alone, each in a process of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Whom a child's messages concern beside its own ledger."""

    on_hello: Callable[[ChildProcess, Hello], None]
    on_resync: Callable[[ChildProcess, list[int]], None]
    on_told: Callable[[Told], None]
    on_convicted: Callable[[Convicted], None]


class ChildProcess:
    """One child, from its start to its burial."""

    def __init__(self, worker: str, plan: Plan, hooks: Hooks) -> None:
        self.worker = worker
        """The child's own incarnation: the holder of its claims."""
        self.ledger = Ledger()
        self.ready = False
        self.broken: Broken | None = None
        self.retries: dict[str, str] = {}
        self.born_at = runtime.boottime()
        self.heard_at = self.born_at
        self.silent_since: float | None = None
        self.condemned: frozenset[int] = frozenset()
        """Numbers of the runs past their hard end, for which it has to die."""
        self.sacrificed = False
        """Killed because of a handler that goes on without its claim."""
        self.dead = False
        self.draining = False
        """Told to come to an end: with its worker, or to make room for another."""
        self.dismissed = False
        """Killed because it is not needed, before it had begun to work."""
        self.replaces: ChildProcess | None = None
        """The child that retires as soon as this one is ready."""
        self.retire_grace = plan.settings.grace
        self.end_by = inf
        """When its grace is over."""
        self.forget_after = 0.0
        """When the claims it gave up may be looked up again."""
        self.giving_back = asyncio.Lock()
        """Held while claims are taken from it, so that none of them is confirmed meanwhile."""
        self._plan = plan
        self._hooks = hooks
        self._link: Link[FromChild] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def alone(self) -> bool:
        """Whether its jobs run alone, each in a process of its own."""
        return self._plan.alone

    @property
    def pid(self) -> int:
        """Number of the process, 0 before it runs."""
        return 0 if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start a fresh interpreter: nothing of ours is forked into it."""
        ours, theirs = socket.socketpair()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "lamplighter.worker.child",
                str(theirs.fileno()),
                str(os.getpid()),
                self._plan.spec,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
                env={**os.environ, descendants.CHILD: self.worker},
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._link = supervisor_end(ours, self._hear, self.kill)
        plan, queues = self._plan, self._plan.queues
        self.say(
            Begin(
                worker=self.worker,
                spec=plan.spec,
                settings=dataclasses.asdict(plan.settings),
                slots=plan.slots,
                queues=() if queues is None else queues.queues,
                weights=None if queues is None else queues.weights,
                path=list(sys.path),
                events=plan.events,
                alone=plan.alone,
            )
        )

    async def died(self) -> int:
        """Wait for the process to end, and read its last words; gives its exit status."""
        assert self._process is not None  # noqa: S101 - only started children are waited for
        status = await self._process.wait()
        self.read()
        self.dead = True
        # What its handlers have started must not go on working for a job that is given back.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._link is not None:
            self._link.close()
        return status

    def kill(self) -> None:
        """End the process and all it has started, now."""
        if self._process is not None and not self.dead:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def drain(self, grace: float) -> None:
        """Tell it to come to an end; one that has not begun to work is simply ended."""
        if self.dead:
            return
        self.draining = True
        self.end_by = min(self.end_by, runtime.boottime() + grace)
        if self.ready:
            self.say(Drain(grace))
        else:
            self.dismissed = self.broken is None
            self.kill()

    def say(self, message: Message) -> None:
        """Tell it something."""
        if self._link is not None and not self.dead:
            self._link.say(message)

    def read(self) -> None:
        """Take in everything it has said so far."""
        if self._link is not None:
            self._link.read()

    def reassure(self, now: float) -> None:
        """Tell it that its leases are being kept; one that does not listen is told no more."""
        if self._link is not None and not self._link.congested:
            self.say(Kept(self.ledger.kept_since(now)))

    def lose(self, numbers: list[int]) -> None:
        """Take claims away from it."""
        if numbers:
            self.ledger.lose(numbers, runtime.boottime())
            self.say(Lost(numbers))

    def _hear(self, message: FromChild) -> None:
        self.heard_at = runtime.boottime()
        match message:
            case Tick():
                pass
            case Told():
                self._hooks.on_told(message)
            case Convicted():
                self._hooks.on_convicted(message)
            case Resync(numbers):
                self._hooks.on_resync(self, numbers)
            case Hello():
                self.ready = True
                self.retries = message.retries
                self._hooks.on_hello(self, message)
                if self.draining:
                    self.kill()
            case Broken():
                self.broken = message
            case _:
                self._enter(message)

    def _enter(self, message: Claimed | Started | Extended | Ended | Finished | Forsaken) -> None:
        match message:
            case Claimed(nonce, first, sent_at, jobs):
                self.ledger.claimed(nonce, first, jobs, sent_at)
            case Started(runs, at):
                self.ledger.started(runs, at)
            case Extended(runs):
                self.ledger.extended(runs)
            case Ended(numbers):
                self.ledger.ended(numbers)
            case Finished(numbers):
                self.ledger.ended(numbers)
                self.ledger.drop(numbers)
            case Forsaken(numbers):
                self.ledger.ended(numbers)
                self.ledger.forsake(numbers)
