"""The children of a worker: as many as wanted, one replaced by the next, none held up by another.

A child that *retires* takes nothing new and finishes what it has; its place is free at once.
A *successor* works in vain until it is ready: only then the child it replaces retires, so that
new code which does not start never costs the old code its place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.observability import events
from lamplighter.worker.link import Broken
from lamplighter.worker.process import ChildProcess

YOUNG = 1.0
"""A child that dies younger than this is replaced after a growing pause."""
BACKOFF = Backoff(0.1, 5.0)


class Crew:
    """Keeps children alive. ``over`` ends when it was told to end and the last one has."""

    def __init__(
        self,
        size: int,
        *,
        make: Callable[[], ChildProcess],
        bury: Callable[[ChildProcess, int], Coroutine[Any, Any, None]],
        on_false_start: Callable[[ChildProcess, int], None],
    ) -> None:
        self.children: list[ChildProcess] = []
        """All that are not buried yet."""
        self.size = size
        self.ending = False
        self._make = make
        self._bury = bury
        self._on_false_start = on_false_start
        self._failures = 0
        self._not_before = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._living: set[asyncio.Task[None]] = set()
        self._outdated: deque[ChildProcess] = deque()
        """Children whose code is old, in the order in which they are replaced."""
        self._over = asyncio.Event()

    @property
    def active(self) -> list[ChildProcess]:
        """Those that take new jobs, or will when they are ready."""
        return [
            child
            for child in self.children
            if not child.dead and not child.draining and child.replaces is None
        ]

    def begin(self) -> None:
        """Start the first ones."""
        self._fill()

    async def over(self) -> None:
        """Wait until the last child has ended and is buried."""
        await self._over.wait()
        while self._living:
            await asyncio.gather(*self._living, return_exceptions=True)

    def resize(self, size: int, grace: float) -> None:
        """Want another number of children: more at once, fewer as they finish."""
        self.size = size
        idlest = sorted(self.active, key=lambda child: (child.ready, child.ledger.running()))
        for child in idlest[: max(0, len(idlest) - size)]:
            self.retire(child, grace, "fewer are needed")
        self._fill()

    def reload(self) -> None:
        """Replace every child by a fresh one, one after the other."""
        for child in self.children:
            if child.replaces is not None and not child.ready:
                # It may have read half of the change.
                child.dismissed = True
                child.kill()
        self._outdated = deque(self.active)
        self._replace_next()

    def retire(self, child: ChildProcess, grace: float, why: str) -> None:
        """Take a child out of the line; another takes its place at once."""
        if child.draining or child.dead:
            return
        child.drain(grace)
        events.emit(
            events.CHILD_RETIRED, worker=child.worker, pid=child.pid, alone=child.alone, why=why
        )
        self._fill()

    def end(self, grace: float) -> None:
        """Come to an end."""
        self.ending = True
        self._outdated.clear()
        for child in self.children:
            child.drain(grace)
        self._check_over()

    def kill_all(self) -> None:
        """End every process now."""
        for child in self.children:
            child.kill()

    def give_up(self) -> None:
        """Leave those that are not buried to others."""
        for task in self._living:
            task.cancel()

    def ready(self, child: ChildProcess) -> None:
        """Note that a child has begun to work."""
        self._failures = 0
        old, child.replaces = child.replaces, None
        if old is not None:
            self.retire(old, old.retire_grace, "its code is replaced")
            self._replace_next()

    # ── one child after another ──────────────────────────────────────────────────────────────

    def _fill(self) -> None:
        if self.ending:
            return
        missing = self.size - len(self.active)
        wait = self._not_before - runtime.boottime()
        if missing > 0 and wait > 0:
            self._look_again(wait)
            return
        for _ in range(missing):
            self._start(self._make())

    def _look_again(self, wait: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(wait, self._fill)

    def _replace_next(self) -> None:
        while self._outdated and not self.ending:
            old = self._outdated.popleft()
            if old in self.active:
                successor = self._make()
                successor.replaces = old
                self._start(successor)
                return

    def _start(self, child: ChildProcess) -> None:
        self.children.append(child)
        task = runtime.spawn(self._live(child), name="child", on_crash=_complain)
        self._living.add(task)
        task.add_done_callback(self._living.discard)

    async def _live(self, child: ChildProcess) -> None:
        """Start a child, wait for its end, see to the next; the burial holds nobody up."""
        try:
            await child.start()
        except OSError as error:
            # No room for another process, or no memory: as good as a child that died at once.
            child.broken = Broken("error", f"no child process can be started: {error}", "")
            child.dead = True
            status = -1
        else:
            if self.ending:
                child.kill()
            status = await child.died()
        self._count_failure(child, status)
        try:
            self._fill()
            await self._bury(child, status)
        finally:
            self.children.remove(child)
            self._check_over()

    def _count_failure(self, child: ChildProcess, status: int) -> None:
        old, child.replaces = child.replaces, None
        if self.ending or child.dismissed:
            return
        if old is not None and not child.ready:
            # The old code works and stays. The next change is another try.
            self._outdated.clear()
            return
        if not child.ready:
            self._failures += 1
            self._on_false_start(child, status)
        if not child.ready or runtime.boottime() - child.born_at <= YOUNG:
            self._not_before = runtime.boottime() + BACKOFF.after(self._failures + 1)

    @property
    def failures(self) -> int:
        """Starts that have failed since the last one that did not."""
        return self._failures

    def _check_over(self) -> None:
        if self.ending and not self.children:
            self._over.set()


def _complain(error: BaseException) -> None:
    events.emit(events.SERVICE_ERROR, service="supervisor", error=error, expected=False)
