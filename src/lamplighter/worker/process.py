"""A child as its supervisor sees it: a process, a line to it, and the ledger of its claims."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.stride import QueueStride
from lamplighter.worker import descendants
from lamplighter.worker.ledger import Entry, Ledger
from lamplighter.worker.link import (
    AskCancels,
    Begin,
    Broken,
    Claimed,
    Convicted,
    Counted,
    Drain,
    Ended,
    Extended,
    Finished,
    Forsaken,
    FromChild,
    Hello,
    Hurt,
    Kept,
    Link,
    Lost,
    Message,
    Resync,
    Started,
    Tick,
    Told,
    Unkept,
    supervisor_end,
)

LET_GO = 10.0
"""Seconds for which claims are kept that were taken from a child which has not let go of them."""


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


def ignore(_: object) -> None:
    """Count nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Whom a child's messages concern beside its own ledger."""

    on_hello: Callable[[ChildProcess, Hello], None]
    on_resync: Callable[[ChildProcess, list[int]], None]
    on_told: Callable[[Told], None]
    on_convicted: Callable[[Convicted], None]
    on_hurt: Callable[[ChildProcess, Hurt], None]
    on_let_go: Callable[[ChildProcess], None]
    """Told when `ChildProcess.let_go` has its first entry."""
    on_counted: Callable[[Counted], None] = ignore
    on_ask_cancels: Callable[[ChildProcess], None] = ignore


class ChildProcess:
    """One child, from its start to its burial."""

    def __init__(self, worker: str, plan: Plan, hooks: Hooks) -> None:
        self.worker = worker
        """The child's own incarnation: the holder of its claims."""
        self.ledger = Ledger()
        self.ready = False
        self.broken: Broken | None = None
        self.retries: dict[str, str] = {}
        self.hard_after: dict[str, float] = {}
        """Seconds between timeout and hard end, per type."""
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
        self.taken: dict[int, tuple[Entry, float]] = {}
        """Claims that were taken from it without anybody else having got them, and when. Its
        handlers may still be at work for them."""
        self.let_go: list[Entry] = []
        """Those of them that it has nothing to do with any more."""
        self._unkept: set[int] = set()
        """Claims that it stops by itself, because it thinks that nobody keeps them."""
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

    def lose(self, numbers: list[int], *, settled: bool = False) -> None:
        """Take claims away from it; ``settled``: they are in other hands, or will be at once."""
        if numbers:
            if not settled:
                self._take(numbers)
            self.ledger.lose(numbers, runtime.boottime())
            self.say(Lost(numbers))

    def take_back(self, entries: Iterable[Entry]) -> None:
        """Have claims given back that were taken from it, once it has let go of them."""
        now = runtime.boottime()
        self.taken |= {entry.number: (entry, now) for entry in entries}

    def leave(self, numbers: Iterable[int]) -> None:
        """Forget claims that were taken from it: they are settled, or others have them."""
        for number in numbers:
            self.taken.pop(number, None)
            self._unkept.discard(number)

    def letting_go(self, now: float, age: float) -> list[Entry]:
        """Claims to be renewed until it has let go of them: their lease has reached ``age``."""
        return [
            entry
            for entry, taken_at in self.taken.values()
            if entry.kept_at + age <= now < taken_at + LET_GO
            and (entry.hard_end is None or entry.hard_end > now)
        ]

    def _hear(self, message: FromChild) -> None:
        self.heard_at = runtime.boottime()
        match message:
            case Tick():
                pass
            case Counted():
                self._hooks.on_counted(message)
            case Told():
                self._hooks.on_told(message)
            case Convicted():
                self._hooks.on_convicted(message)
            case Hurt():
                self._hooks.on_hurt(self, message)
            case Resync(numbers):
                self._hooks.on_resync(self, numbers)
            case AskCancels():
                self._hooks.on_ask_cancels(self)
            case Hello():
                self.ready = True
                self.retries = message.retries
                self.hard_after = {
                    one["name"]: one["options"]["hard_after"] for one in message.types
                }
                self._hooks.on_hello(self, message)
                if self.draining:
                    self.kill()
            case Broken():
                self.broken = message
            case _:
                self._enter(message)

    def _enter(
        self, message: Claimed | Started | Extended | Ended | Finished | Forsaken | Unkept
    ) -> None:
        match message:
            case Claimed(nonce, first, asked_at, jobs):
                self.ledger.claimed(nonce, first, jobs, asked_at)
            case Started(runs, at):
                self.ledger.started(runs, at)
                if self.taken:
                    self._started_late(number for number, _ in runs)
            case Extended(runs):
                self.ledger.extended(runs)
            case Ended(numbers):
                self.ledger.ended(numbers)
            case Finished(numbers):
                self.ledger.ended(numbers)
                self.ledger.drop(numbers)
                if self.taken or self._unkept:
                    self.leave(numbers)
            case Forsaken(numbers):
                self.ledger.ended(numbers)
                self._take([n for n in numbers if n in self._unkept])
                self.ledger.forsake(numbers)
                self._let_go(numbers)
            case Unkept(numbers):
                self._unkept.update(n for n in numbers if n in self.ledger.entries)

    def _take(self, numbers: Iterable[int]) -> None:
        now, entries = runtime.boottime(), self.ledger.entries
        self.taken |= {n: (entries[n], now) for n in numbers if n in entries}

    def _let_go(self, numbers: Iterable[int]) -> None:
        if let_go := [self.taken[n][0] for n in numbers if n in self.taken]:
            self.let_go += let_go
            if len(self.let_go) == len(let_go):
                self._hooks.on_let_go(self)

    def _started_late(self, numbers: Iterable[int]) -> None:
        """Note what it started before it heard that it was taken away."""
        for number in numbers:
            if number in self.taken and not self.taken[number][0].started:
                entry, taken_at = self.taken[number]
                entry.started = True
                self.ledger.forsaken.append(entry)
                self.ledger.hanging[number] = taken_at
