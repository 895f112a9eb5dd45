"""Watches the children: loops that stand still, handlers past their hard end, leases too old."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreError
from lamplighter.observability import events
from lamplighter.service import Service
from lamplighter.worker.burial import Burial
from lamplighter.worker.link import Broken
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.run import margin

SILENCE = 1.0
"""After this long without a word a child's unstarted claims are given back."""
INTERVAL = 0.25
START_DEADLINE = 60.0
"""A child that has not said hello by then is killed; the next one may have more luck."""
FORSAKEN = 1000
"""From so many on, claims that a child gave up are looked up in the store, to be forgotten."""


class Watch(Service):
    """One look at each child per step. Nothing in a step waits for the store.

    The store may hang; that is exactly when leases run out and have to be noticed.
    """

    name = "watch children"

    def __init__(
        self,
        settings: Settings,
        burial: Burial,
        children: Callable[[], Iterable[ChildProcess]],
    ) -> None:
        super().__init__()
        self._burial = burial
        self._children = children
        self._believed = settings.lease - margin(settings.lease)
        self._again_after = max(SILENCE, settings.lease / 3)
        self._interval = min(INTERVAL, settings.lease / 10)

    async def step(self) -> float:
        """Look at every child once."""
        for child in list(self._children()):
            if child.dead:
                continue
            # First the clock, then the buffer: should we be stopped between the two, the
            # child said more than we think, and we take nothing away from it by mistake.
            now = runtime.boottime()
            child.read()
            if child.ready:
                self._end_leases(child, now)
                self._end_overdue(child, now)
                self._notice_silence(child, now)
                self._forget(child, now)
                child.reassure(now)
            else:
                self._end_start(child, now)
        return self._interval

    def _end_start(self, child: ChildProcess, now: float) -> None:
        if child.broken is None and now - child.born_at > START_DEADLINE:
            child.broken = Broken(
                "error",
                f"a child process did not start within {START_DEADLINE:g} s, so it was killed",
                "look what the program waits for while it is imported, and whether the store "
                "answers",
            )
            child.kill()

    def _forget(self, child: ChildProcess, now: float) -> None:
        if len(child.ledger.forsaken) >= FORSAKEN and now >= child.forget_after:
            child.forget_after = now + self._again_after
            runtime.spawn(self._burial.forget(child), name="forget", on_crash=_complain)

    def _end_leases(self, child: ChildProcess, now: float) -> None:
        child.lose([entry.number for entry in child.ledger.stale(now, self._believed)])

    def _end_overdue(self, child: ChildProcess, now: float) -> None:
        overdue = child.ledger.overdue(now)
        if overdue and not child.condemned:
            child.condemned = frozenset(entry.number for entry in overdue)
            child.kill()

    def _notice_silence(self, child: ChildProcess, now: float) -> None:
        silent = now - child.heard_at
        if silent <= SILENCE:
            child.silent_since = None
            return
        if child.silent_since is None:
            events.emit(events.LOOP_SILENT, worker=child.worker, seconds=silent)
        elif now - child.silent_since < self._again_after:
            return
        # Again from time to time: a claim that was under way may have arrived after the look.
        child.silent_since = now
        runtime.spawn(self._burial.give_back(child), name="give back", on_crash=_complain)


def _complain(error: BaseException) -> None:
    expected = isinstance(error, StoreError)
    events.emit(events.SERVICE_ERROR, service="give back", error=error, expected=expected)
