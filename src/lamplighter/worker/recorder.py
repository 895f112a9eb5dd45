"""Writes what running attempts have to say, a little later and many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf

from lamplighter import runtime
from lamplighter.model.errors import StoreError
from lamplighter.model.journal import Journal, joined
from lamplighter.port.store import Engine
from lamplighter.port.values import Recording
from lamplighter.service import Service
from lamplighter.worker.run import BATCH, Run

EVERY = 0.5
"""Seconds between two looks."""
PROGRESS_EVERY = 1.0
"""Seconds between two writes of one run's progress."""
CALL_BYTES = 1024 * 1024
"""Bytes after which a call is full: no call should keep others waiting for long."""
STEP_BYTES = 4 * CALL_BYTES
"""Bytes after which the runs that are left wait for the next look."""


class Recorder(Service):
    """One record in flight. News stays here until the store has it, or the run's settle does.

    Both may write the same: written twice is written once. News of a job that somebody else has
    locked stays, too. That a claim was lost is others' to tell: that answer changes nothing here.
    """

    name = "record"

    def __init__(self, engine: Engine, running: Callable[[], Iterable[Run]]) -> None:
        super().__init__()
        self._engine = engine
        self._running = running
        self._limit = min(BATCH, engine.capabilities.max_batch)
        self._kept: dict[Run, Journal] = {}
        """News taken from runs that the store is not known to have."""
        self._told_at: dict[Run, float] = {}
        """When a run's progress was last written."""
        self._turn = -1
        """Number of the run that was looked at last: the next look begins behind it."""

    def last_words(self, run: Run) -> Journal | None:
        """Return what the settle of a run should carry: all that the store is not known to have.

        To be called once, in the same turn of the loop in which the run ceases to be running.
        """
        kept = self._kept.pop(run, None)
        self._told_at.pop(run, None)
        last = None if run.notes is None else run.notes.take(last=True)
        return kept if last is None else joined(kept, last)

    async def step(self) -> float:
        """Write the news of all runs, or as many as fit; those left out come first next time."""
        turns = self._turns()
        room = STEP_BYTES
        while turns and room > 0:
            batch = self._batch(turns)
            if not batch:
                break
            await self._write(batch)
            room -= sum(journal.size for _, journal in batch)
        return EVERY

    def _turns(self) -> deque[Run]:
        runs = [run for run in self._running() if run.notes is not None]
        self._forget_all_but(runs)
        runs.sort(key=_number)
        place = bisect_right(runs, self._turn, key=_number)
        return deque(runs[place:] + runs[:place])

    def _forget_all_but(self, runs: Sequence[Run]) -> None:
        """Let go of runs that ended without last words: their claims were lost."""
        if self._kept or self._told_at:
            present = set(runs)
            for gone in [run for run in self._kept if run not in present]:
                del self._kept[gone]
            for gone in [run for run in self._told_at if run not in present]:
                del self._told_at[gone]

    def _batch(self, turns: deque[Run]) -> list[tuple[Run, Journal]]:
        batch: list[tuple[Run, Journal]] = []
        size = 0
        while turns and len(batch) < self._limit and size < CALL_BYTES:
            run = turns.popleft()
            self._turn = run.number
            journal = self._news(run)
            if journal is not None:
                batch.append((run, journal))
                size += journal.size
        return batch

    def _news(self, run: Run) -> Journal | None:
        """Take a run's news and give what of it is to be written now."""
        fresh = None if run.notes is None else run.notes.take()
        kept = self._kept.get(run)
        if fresh is not None:
            kept = self._kept[run] = joined(kept, fresh)
        if kept is None or kept.progress is None:
            return kept
        if runtime.boottime() - self._told_at.get(run, -inf) >= PROGRESS_EVERY:
            return kept
        without = replace(kept, progress=None)
        return None if without == Journal() else without

    async def _write(self, batch: Sequence[tuple[Run, Journal]]) -> None:
        recordings = [
            Recording(run.claim.job.id, run.claim.fence, journal) for run, journal in batch
        ]
        try:
            answers = await self._engine.jobs.record(recordings)
        except StoreError:
            # All of it stays here and is written again together with what comes next.
            raise
        except Exception:
            # What cannot be written must not stand in the way of what can.
            for run, _ in batch:
                self._kept.pop(run, None)
            raise
        now = runtime.boottime()
        for (run, journal), answer in zip(batch, answers, strict=True):
            if not answer.busy:
                self._written(run, journal, now)

    def _written(self, run: Run, journal: Journal, now: float) -> None:
        kept = self._kept.pop(run, None)
        if kept is None:
            # Its settle has carried the same meanwhile.
            return
        if journal.progress is not None:
            self._told_at[run] = now
        elif kept.progress is not None:
            self._kept[run] = Journal(progress=kept.progress)


def _number(run: Run) -> int:
    return run.number
