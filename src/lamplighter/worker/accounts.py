"""What all children of a worker did: for its metrics, and for the store's minutes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Protocol, runtime_checkable

from lamplighter import runtime
from lamplighter.model.activity import NOTHING, Tally, no_lags
from lamplighter.model.errors import StoreError
from lamplighter.model.job import Claim
from lamplighter.model.lifecycle import Settlement
from lamplighter.observability import metrics, outlet
from lamplighter.observability.calls import Calls
from lamplighter.observability.health import Health
from lamplighter.observability.meter import MOST, Meter, tell_build
from lamplighter.port.store import VERBS, Engine
from lamplighter.port.values import Settled
from lamplighter.service import Service
from lamplighter.worker.counting import outcome_of
from lamplighter.worker.link import Counted

TALLY = 10.0
"""Seconds between two tallies."""


@runtime_checkable
class Rescuing(Protocol):
    """A loop that gives jobs of vanished workers back."""

    rescued: int


class Accounts:
    """Adds up what children report, what was buried, and what was rescued."""

    def __init__(self, most: int = MOST) -> None:
        self.meter = Meter(most)
        tell_build(self.meter)
        self.loops: Iterable[Service] = ()
        self.calls = Calls()
        """The supervisor's own calls of the store."""
        self._ends: Counter[str] = Counter()
        self._lags = list(no_lags())
        self._stale = 0
        self._rescued = 0
        self._dropped = 0
        """Lines of output that children have dropped."""

    def expect(self, queues: Collection[str], types: Collection[str]) -> None:
        """Begin the counts of what this worker serves and runs.

        Where there are more names than are told apart, those have series that are used first.
        """
        meter = self.meter
        for verb in VERBS:
            meter.begin(metrics.STORE_ERRORS, verb)
        if meter.has_room("queue", queues):
            for queue in queues:
                meter.begin(metrics.START_LAG_SECONDS, queue)
        if meter.has_room("type", types):
            for name in types:
                for metric in (metrics.RUN_SECONDS, metrics.RETRIES, metrics.DEAD):
                    meter.begin(metric, name)
                for outcome in metrics.OUTCOMES:
                    meter.begin(metrics.JOBS_ENDED, name, outcome)

    def hear(self, counted: Counted) -> None:
        """Take in what a child has counted."""
        meter, mine = self.meter, self._lags
        for queue, (counts, total) in counted.lags.items():
            meter.classes(metrics.START_LAG_SECONDS, queue).add(counts, total)
            for place, count in enumerate(counts):
                mine[place] += count
        for name, (counts, total) in counted.runs.items():
            meter.classes(metrics.RUN_SECONDS, name).add(counts, total)
        for name, outcome, count in counted.ends:
            self._end(name, outcome, count)
        if counted.stale:
            self._stale += counted.stale
            meter.add(metrics.STALE_SETTLES, counted.stale)
        self._dropped += counted.dropped
        for verb, (counts, total) in counted.calls.items():
            meter.classes(metrics.STORE_CALL_SECONDS, verb).add(counts, total)
        for verb, count in counted.errors.items():
            meter.add(metrics.STORE_ERRORS, count, verb)

    def buried(self, claim: Claim, settlement: Settlement, answer: Settled) -> None:
        """Count what was settled for a child that could not do it itself."""
        self._end(claim.job.type, outcome_of(settlement, answer), 1)

    def take(self) -> Tally:
        """Return what happened since it was last asked."""
        ends, self._ends = self._ends, Counter()
        lags, self._lags = self._lags, list(no_lags())
        stale, self._stale = self._stale, 0
        rescued = self.rescued()
        before, self._rescued = self._rescued, rescued
        return Tally(
            started=sum(lags),
            succeeded=ends["succeeded"],
            failed=ends["failed"],
            retried=ends["retried"],
            snoozed=ends["snoozed"],
            cancelled=ends["cancelled"],
            rescued=rescued - before,
            stale=stale,
            lags=tuple(lags),
        )

    def rescued(self) -> int:
        """Count the jobs that loops of this process have given back."""
        return sum(loop.rescued for loop in self.loops if isinstance(loop, Rescuing))

    def look(self, health: Health, *, slots: int, busy: int, children: int) -> Meter:
        """Bring up to date what is not counted but looked at."""
        meter = self.meter
        self.calls.pour(meter)
        meter.set(metrics.SLOTS, slots)
        meter.set(metrics.SLOTS_BUSY, busy)
        meter.set(metrics.UTILISATION, busy / slots if slots else 0)
        meter.set(metrics.CHILDREN, children)
        meter.set(metrics.LEASES_EXPIRED, self.rescued())
        meter.add(metrics.STALE_SETTLES, 0)
        meter.set(metrics.OUTPUT_DROPPED, self._dropped + outlet.dropped())
        meter.set(metrics.WELL, int(health.well))
        for loop in health.loops:
            meter.set(metrics.LOOP_IDLE_SECONDS, round(loop.idle, 3), loop.name)
            meter.set(metrics.LOOP_RESTARTS, loop.restarts, loop.name)
        if health.fire is not None:
            meter.set(metrics.FIRE_LAG_SECONDS, health.fire.lag_ms / 1000)
            meter.set(metrics.FIRED, health.fire.fired)
            for reason in {*metrics.SKIP_REASONS, *health.fire.skipped}:
                meter.set(metrics.SKIPPED, health.fire.skipped.get(reason, 0), reason)
        return meter

    def _end(self, name: str, outcome: str, count: int) -> None:
        self._ends[outcome] += count
        self.meter.add(metrics.JOBS_ENDED, count, name, outcome)
        if outcome == "retried":
            self.meter.add(metrics.RETRIES, count, name)
        elif outcome == "failed":
            self.meter.add(metrics.DEAD, count, name)


class Tallier(Service):
    """Adds what the worker did to the store's minutes.

    While the store cannot take a tally, the same one is offered again under its number, and what
    happens meanwhile is gathered for the next. The work goes on in any case.
    """

    name = "tally"
    patience = 120.0

    def __init__(self, engine: Engine, worker: str, take: Callable[[], Tally]) -> None:
        super().__init__()
        self._engine = engine
        self._worker = worker
        self._take = take
        self._number = 1
        self._offered: Tally = NOTHING

    async def step(self) -> float:
        """Offer what has been counted."""
        # What is wrong with the store is told by those who need it for the work.
        with contextlib.suppress(StoreError):
            await self._offer()
        return TALLY * (0.9 + 0.2 * runtime.random())

    async def stop(self) -> None:
        """Offer the rest."""
        await super().stop()
        await self.step()

    async def _offer(self) -> None:
        # What was offered and not answered first: it has a number already.
        for _ in range(2):
            if not self._offered:
                self._offered = self._take()
            if not self._offered:
                return
            await self._engine.activity.tally(self._worker, self._number, self._offered)
            self._number += 1
            self._offered = NOTHING
