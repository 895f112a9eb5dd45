"""Several processes at one address: a parent that starts them, replaces them and ends them."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.observability import outlet

LIVED = 10.0
"""Seconds after which a process that ends is replaced at once."""
BACKOFF = Backoff(0.1, 10.0)
TOO_LONG = 5.0
"""Seconds after the grace at which a process is killed that has not come to its end."""

FAILED = 1


@dataclass(frozen=True, slots=True)
class Start:
    """What a process of several gets from its parent."""

    parent: int
    """A file that comes to its end with the parent."""
    on_ready: Callable[[], None]


Work = Callable[[Start], int]
"""What each process does; gives its exit code."""


@dataclass(slots=True)
class Child:
    """One process."""

    pid: int
    born_at: float
    news: int
    """A file to which it writes when it is ready."""
    ready: bool = False


class Parent:
    """Keeps so many processes at work until it is told to stop.

    The first has to be ready before the others are started: what keeps all of them from starting
    is told once. Nothing that a fork would share may be open yet, and no thread may run.
    """

    def __init__(
        self, count: int, work: Work, *, grace: float, tell: Callable[[str], None]
    ) -> None:
        self._count = count
        self._work = work
        self._grace = grace
        self._tell = tell
        self._children: dict[int, Child] = {}
        self._life, self._life_end = os.pipe()
        self._failures = 0
        self._start_at = 0.0
        self._was_ready = False
        self._stopping = False
        self._kill_at: float | None = None

    def run(self, on_ready: Callable[[], None]) -> int:
        """Live until SIGTERM or Ctrl-C, or until the first process cannot start."""
        told = False
        with _bell() as bell:
            while True:
                self._start_missing()
                self._wait(bell)
                if not self._bury() and not self._was_ready:
                    return FAILED
                if self._stopping and not self._children:
                    return 0
                if not told and self._all_ready():
                    told = True
                    on_ready()

    # ── start ────────────────────────────────────────────────────────────────────────────────

    def _start_missing(self) -> None:
        if self._stopping or runtime.monotonic() < self._start_at:
            return
        while len(self._children) < self._wanted:
            self._start_one()

    @property
    def _wanted(self) -> int:
        return self._count if self._was_ready else 1

    def _start_one(self) -> None:
        news, tell_news = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(self._life_end)
            os.close(news)
            _become_child(self._work, Start(self._life, lambda: _tell_ready(tell_news)))
        os.close(tell_news)
        self._children[pid] = Child(pid, runtime.monotonic(), news)

    def _all_ready(self) -> bool:
        ready = [child for child in self._children.values() if child.ready]
        return len(ready) >= self._count

    # ── wait ─────────────────────────────────────────────────────────────────────────────────

    def _wait(self, bell: int) -> None:
        """Wait until something happens or is to be done, and take it in."""
        starting = [child for child in self._children.values() if not child.ready]
        by_file = {child.news: child for child in starting}
        found, _, _ = select.select([bell, *by_file], [], [], self._patience())
        for file in found:
            if file == bell:
                self._heed(os.read(bell, 256))
            elif os.read(file, 1):
                by_file[file].ready = self._was_ready = True
                self._failures = 0
        if self._kill_at is not None and runtime.monotonic() >= self._kill_at:
            self._signal_all(signal.SIGKILL)

    def _patience(self) -> float | None:
        now = runtime.monotonic()
        if self._kill_at is not None:
            return max(0.0, self._kill_at - now)
        return max(0.0, self._start_at - now) if len(self._children) < self._wanted else None

    def _heed(self, signals: bytes) -> None:
        for number in signals:
            if number in {signal.SIGTERM, signal.SIGINT}:
                if not self._stopping:
                    self._stopping = True
                    self._kill_at = runtime.monotonic() + self._grace + TOO_LONG
                self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: int) -> None:
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    # ── end ──────────────────────────────────────────────────────────────────────────────────

    def _bury(self) -> bool:
        """Take note of processes that have ended; False: one that was never ready has failed."""
        well = True
        for child in tuple(self._children.values()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if not pid:
                continue
            del self._children[pid]
            os.close(child.news)
            if self._stopping:
                continue
            well = well and child.ready
            if self._was_ready:
                self._replace(child, os.waitstatus_to_exitcode(status))
        return well

    def _replace(self, child: Child, code: int) -> None:
        now = runtime.monotonic()
        if now - child.born_at >= LIVED:
            self._failures = 0
        else:
            self._failures += 1
        self._start_at = now + BACKOFF.after(self._failures)
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        self._tell(f"the process {child.pid} has ended {how}; another one is started")


def _become_child(work: Work, start: Start) -> None:
    """Do the work and end; nothing of what the parent was about to do is done here."""
    code = FAILED
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = work(start)
    except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on
        traceback.print_exc()
    finally:
        outlet.flush()
        os._exit(code)


def _tell_ready(news: int) -> None:
    with suppress(OSError):
        os.write(news, b".")


@contextmanager
def _bell() -> Generator[int]:
    """Return a file that has a byte for every signal that concerns the parent."""
    bell, ring = os.pipe()
    os.set_blocking(bell, False)
    os.set_blocking(ring, False)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
    before = {number: signal.signal(number, _heard) for number in numbers}
    wakeup = signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    try:
        yield bell
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(bell)
        os.close(ring)


def _heard(_number: int, _frame: FrameType | None) -> None:
    """Do nothing here: the bell rings."""
