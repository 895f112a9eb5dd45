"""Watches the children: loops that stand still, handlers past their hard end, leases too old."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreError
from lamplighter.observability import events
from lamplighter.observability.failures import process_log
from lamplighter.service import Service
from lamplighter.worker import descendants, memory
from lamplighter.worker.burial import Burial
from lamplighter.worker.ending import KILL_AFTER
from lamplighter.worker.link import Broken
from lamplighter.worker.process import ChildProcess
from lamplighter.worker.run import margin
from lamplighter.worker.standstill import Standstill

SWEEP = 10.0
"""Seconds between two looks for what killed workers have left behind."""
LOST_GRACE = 3.0
"""Seconds that a handler has to end after its claim was lost, before its process is killed."""
WEIGH = 2.0
"""Seconds between two looks at the memory of children."""
SILENCE = 1.0
"""After this long without a word a child's unstarted claims are given back."""
INTERVAL = 0.25
STANDSTILL = 0.5
"""A step that comes this much later than planned says that we stood still ourselves."""
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
        retire: Callable[[ChildProcess, str], None],
    ) -> None:
        super().__init__()
        self._retire = retire
        self._fat = settings.child_mb << 20
        self._weigh_at = 0.0
        self._sweep_at = 0.0
        if self._fat and not memory.KNOWN:
            told = "this system does not tell how much memory a process uses; `child_mb` is ignored"
            events.emit(events.SERVICE_ERROR, service=self.name, error=told, expected=True)
        self._burial = burial
        self._children = children
        self._lease = settings.lease
        self._believed = settings.lease - margin(settings.lease)
        self._standstill = Standstill(settings.lease)
        self._looked_at: float | None = None
        self._again_after = max(SILENCE, settings.lease / 3)
        self._interval = min(INTERVAL, settings.lease / 10)

    async def step(self) -> float:
        """Look at every child once."""
        self._look_for_standstill()
        self._sweep()
        process_log().tick()
        if self._fat:
            self._replace_fat()
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

    def _look_for_standstill(self) -> None:
        now, last = runtime.boottime(), self._looked_at
        self._looked_at = now
        if last is not None and now - last > self._interval + min(STANDSTILL, self._lease / 5):
            self._standstill.note(last, now)

    def _silence(self, child: ChildProcess, now: float) -> float:
        """Seconds without a word of a child that could have been heard."""
        return now - max(child.heard_at, self._standstill.ended)

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
        child.lose(
            [
                entry.number
                for entry in child.ledger.stale(now, self._believed, earlier=4 * self._interval)
                if not self._standstill.excuses(entry.kept_at + self._believed, now)
            ]
        )

    def _end_overdue(self, child: ChildProcess, now: float) -> None:
        """End a child for handlers past their hard end, after what runs beside them has ended.

        Another child takes its place at once. One whose loop stands still finishes nothing. What
        has ended is waited for until it is written: it would run again.
        """
        overdue = child.ledger.overdue(now)
        silent = self._silence(child, now) > SILENCE
        if overdue and silent and child.ledger.running() > 1 and not child.condemned:
            # Whoever holds up the loop keeps the others from ending in time: nobody is charged.
            # They all run alone next time, where the one who does it is out of time alone.
            child.kill()
            return
        if overdue:
            child.condemned |= {entry.number for entry in overdue}
        beside = child.ledger.running() - len(overdue) + child.ledger.unwritten()
        if overdue and (beside <= 0 or silent):
            child.kill()
        elif overdue and not child.draining:
            self._retire(child, "a handler is past its hard end")
        elif now > child.end_by + KILL_AFTER:
            child.kill()
        elif any(now > since + LOST_GRACE for since in child.ledger.hanging.values()):
            # Somebody else may run the same job: there is no time for its neighbours to finish.
            child.sacrificed = True
            child.kill()

    def _sweep(self) -> None:
        """End what was left behind by workers that were killed on this machine."""
        now = runtime.boottime()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP
            sweeping = asyncio.to_thread(descendants.kill_abandoned, runtime.boot_id())
            runtime.spawn(sweeping, name="sweep", on_crash=_complain)

    def _replace_fat(self) -> None:
        """Replace children that have grown beyond their memory; what they run may finish."""
        now = runtime.boottime()
        if now < self._weigh_at:
            return
        self._weigh_at = now + WEIGH
        for child in list(self._children()):
            used = memory.of(child.pid) if child.ready and not child.draining else None
            if used is not None and used > self._fat:
                self._retire(child, f"it uses {used >> 20:,} MB of memory")

    def _notice_silence(self, child: ChildProcess, now: float) -> None:
        silent = self._silence(child, now)
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
