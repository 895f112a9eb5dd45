"""Counts what a child does, batch by batch, for its supervisor.

A start costs a look at the clock per batch and one search in a short list; an end costs about the
same. What was counted goes to the supervisor with the next sign of life, in one message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lamplighter import runtime
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.observability import outlet
from lamplighter.observability.calls import Calls
from lamplighter.observability.meter import Classes
from lamplighter.observability.metrics import LAG_BOUNDS, RUN_BOUNDS
from lamplighter.port.values import SettleAnswer, Settled
from lamplighter.worker.link import Counted
from lamplighter.worker.run import Run

MOST = 1_000
"""Queues, and types, that one message tells apart."""
OTHER = "other"

_FAILURES = frozenset({"failed", "timed_out", "abandoned", "rejected"})
_ENDS = {
    JobState.SUCCEEDED: "succeeded",
    JobState.DEAD: "failed",
    JobState.CANCELLED: "cancelled",
}


class Counts:
    """What a child did since it last told its supervisor."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._lags: dict[str, Classes] = {}
        self._runs: dict[str, Classes] = {}
        self._ends: dict[tuple[str, str], int] = {}
        self._stale = 0
        self._dropped = outlet.dropped()

    def started(self, batch: Iterable[Run]) -> None:
        """Count runs that begin now."""
        now, lags = runtime.now_ms(), self._lags
        for run in batch:
            job = run.claim.job
            classes = lags.get(job.queue) or _named(lags, job.queue, LAG_BOUNDS)
            late = now - job.due_at_ms
            classes.observe(late / 1000 if late > 0 else 0.0)

    def ended(self, run: Run, now: float) -> None:
        """Count a handler that has come to its end."""
        if run.started_at:
            runs, name = self._runs, run.type.name
            (runs.get(name) or _named(runs, name, RUN_BOUNDS)).observe(now - run.started_at)

    def settled(self, written: Sequence[tuple[Run, Settlement, Settled]]) -> None:
        """Count what was written, and what was refused."""
        ends = self._ends
        for run, settlement, answer in written:
            if answer.answer is SettleAnswer.LOST:
                self._stale += 1
                continue
            key = (run.type.name, outcome_of(settlement, answer))
            ends[key] = ends.get(key, 0) + 1

    def take(self) -> Counted | None:
        """Return what was counted, and begin anew; None: there is nothing to tell."""
        times, errors = self._calls.take()
        before, self._dropped = self._dropped, outlet.dropped()
        dropped = self._dropped - before
        if not (
            self._lags or self._runs or self._ends or self._stale or times or errors or dropped
        ):
            return None
        counted = Counted(
            lags={name: (one.counts, one.sum) for name, one in self._lags.items()},
            runs={name: (one.counts, one.sum) for name, one in self._runs.items()},
            ends=[(*key, count) for key, count in self._ends.items()],
            stale=self._stale,
            calls={verb: (one.counts, one.sum) for verb, one in times.items()},
            errors=errors,
            dropped=dropped,
        )
        self._lags, self._runs, self._ends, self._stale = {}, {}, {}, 0
        return counted


def outcome_of(settlement: Settlement, answer: Settled) -> str:
    """Name what a run came to, as it is counted."""
    state = answer.state
    if state is JobState.SUCCEEDED:
        return "succeeded"
    if state is None or state not in _ENDS:
        return "retried" if settlement.outcome in _FAILURES else "snoozed"
    return _ENDS[state]


def _named(known: dict[str, Classes], name: str, bounds: tuple[float, ...]) -> Classes:
    """Return the classes of a name that was not met before."""
    if len(known) >= MOST:
        name = OTHER
    return known.setdefault(name, Classes(bounds))
