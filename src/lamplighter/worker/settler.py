"""Writes what runs came to. What ends while one batch is being written forms the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.config import Settings
from lamplighter.model import lifecycle
from lamplighter.model.errors import StoreError
from lamplighter.model.job import TERMINAL, Claim, JobState
from lamplighter.model.journal import Journal
from lamplighter.model.lifecycle import Settlement, milliseconds
from lamplighter.model.outcome import Failed, Outcome, Rejected
from lamplighter.observability import events
from lamplighter.observability.failures import process_log
from lamplighter.port.store import FINISHED_TOPIC, Engine, queue_topic
from lamplighter.port.values import SettleAnswer, Settled
from lamplighter.service import Service
from lamplighter.worker import failure
from lamplighter.worker.counting import Counts
from lamplighter.worker.recorder import CALL_BYTES
from lamplighter.worker.reporter import Reporter
from lamplighter.worker.run import BATCH, Run

CLOSE_TO_HARD_END = 1.0

_SUCCEEDED = JobState.SUCCEEDED
_BACKOFF = Backoff(0.05, 1.0)


class Settler(Service):
    """One settle in flight; the same batch is repeated until the store answers.

    Repeating is safe: a settle that had been written answers `already`. A claim whose lease is
    lost meanwhile is taken out of the batch and never written. Jobs that somebody else has locked
    are settled later, by calls of their own: a client that is stopped may keep them locked for
    long.
    """

    name = "settle"

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        on_settled: Callable[[list[int]], None],
        on_ended: Callable[[list[int]], None],
        on_forsaken: Callable[[list[int]], None],
        last_words: Callable[[Run], Journal | None],
    ) -> None:
        super().__init__()
        self.tells = False
        """Whether each settlement is told as an event."""
        self.reporter: Reporter | None = None
        """Calls the program's hooks, if it has any."""
        self.counts: Counts | None = None
        """Counts what runs come to, if anybody wants to know."""
        self.on_due: Callable[[float], None] = lambda _seconds: None
        """Told in how many seconds the first of the jobs falls due that were put back."""
        self.failures = process_log() if settings.log_failures else None
        """Logs what failed."""
        self._engine = engine
        self._speed = settings.speed
        self._limit = min(BATCH, engine.capabilities.max_batch)
        self._on_settled = on_settled
        self._on_ended = on_ended
        self._on_forsaken = on_forsaken
        self._last_words = last_words
        self._pending: dict[int, tuple[Run, Settlement]] = {}
        self._batch: dict[int, tuple[Run, Settlement]] = {}
        self._busy: dict[int, tuple[Run, Settlement]] = {}
        """What is to be written again because somebody else had the job locked."""
        self._in_vain = 0
        """How often in a row something was busy."""
        self._busy_timer: asyncio.TimerHandle | None = None
        self._busy_due = False
        """Whether it is time to do so."""
        self._said = False
        """Whether what waits may carry journals, which make a batch large."""
        self._reported: set[int] = set()
        self._lost: set[int] = set()
        self._news: asyncio.Future[None] | None = None
        self._empty: asyncio.Future[None] | None = None

    def add(self, run: Run, outcome: Outcome) -> None:
        """Take in a run that has ended."""
        settlement = self._decide(run, outcome)
        if self.reporter is not None and isinstance(outcome, Failed | Rejected):
            run.exception = outcome.exception
        if run.notes is not None:
            self._said = True
            settlement = replace(settlement, journal=self._last_words(run))
        self._pending[run.number] = (run, settlement)
        now = runtime.boottime()
        if self.counts is not None:
            self.counts.ended(run, now)
        if run.hard_end and now > run.hard_end - CLOSE_TO_HARD_END:
            # The supervisor must not kill us for a handler that is done.
            self._report([run.number])
        self._wake()

    def lose(self, numbers: Sequence[int]) -> None:
        """Never write these: they belong to somebody else. Each is told, its work was done."""
        waiting = [n for n in numbers if n in self._pending or n in self._busy]
        for number in numbers:
            dropped = self._pending.pop(number, None) or self._busy.pop(number, None)
            if number in self._batch and number not in self._lost:
                self._lost.add(number)
                dropped = self._batch[number]
            if dropped is not None:
                events.emit(events.LEASE_LOST, job_id=dropped[1].id, verb="settle")
        if waiting:
            # Nobody else will say that their handlers have ended.
            self._on_forsaken(waiting)
            self._tell_emptied()

    def report_slow(self) -> None:
        """Tell which handlers are done though the store has not confirmed it. For the pulse."""
        if self.failures is not None:
            self.failures.tick()
        unwritten = (*self._batch, *self._busy, *self._pending)
        slow = [n for n in unwritten if n not in self._reported]
        if slow:
            self._report(slow)

    async def step(self) -> float:
        """Write one batch; the next begins with what has ended meanwhile."""
        if not self._pending and not (self._busy_due and self._busy):
            await self._wait()
            return 0.0
        self._batch = self._take()
        written = self._set_aside(await self._write())
        self._report_written(written)
        if self.counts is not None:
            self.counts.settled(written)
        await self._tell(written)
        return 0.0

    def _report_written(self, written: Sequence[tuple[Run, Settlement, Settled]]) -> None:
        numbers = [run.number for run, _, _ in written]
        self._on_settled(numbers)
        unwritten = self._batch.keys() - set(numbers)
        if unwritten:
            self._on_forsaken(sorted(unwritten))
        self._reported.difference_update(self._batch)
        self._batch = {}
        self._lost.clear()
        self._tell_emptied()

    async def emptied(self) -> None:
        """Wait until everything that has ended is written."""
        while self._pending or self._batch or self._busy:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def _tell_emptied(self) -> None:
        left = self._pending or self._batch or self._busy
        if not left and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def stop(self) -> None:
        """End after the batch in flight."""
        self._stopped.set()
        if self._busy_timer is not None:
            self._busy_timer.cancel()
        self._wake()
        await super().stop()
        if self.failures is not None:
            self.failures.close()

    # ── decide ───────────────────────────────────────────────────────────────────────────────

    def _decide(self, run: Run, outcome: Outcome) -> Settlement:
        try:
            settlement = lifecycle.settle(
                run.claim, outcome, retry=run.type.retry, chance=runtime.random()
            )
        except BaseException as error:  # noqa: BLE001 - a retry function is user code
            info = failure.describe(error)
            events.emit(
                events.SERVICE_ERROR,
                service="retry",
                error=info.text,
                expected=False,
                job_id=run.claim.job.id,
            )
            settlement = lifecycle.settle(run.claim, outcome, chance=runtime.random())
        return settlement if self._speed == 1 else hastened(settlement, self._speed)

    # ── write ────────────────────────────────────────────────────────────────────────────────

    def _take(self) -> dict[int, tuple[Run, Settlement]]:
        if self._busy_due and self._busy:
            self._busy_due = False
            return {n: self._busy.pop(n) for n in list(self._busy)[: self._limit]}
        if len(self._pending) <= self._limit and not self._said:
            batch, self._pending = self._pending, {}
            return batch
        size, numbers = 0, list[int]()
        for number, (_, settlement) in self._pending.items():
            if len(numbers) == self._limit or size >= CALL_BYTES:
                break
            numbers.append(number)
            size += 0 if settlement.journal is None else settlement.journal.size
        self._said = len(numbers) < len(self._pending)
        return {number: self._pending.pop(number) for number in numbers}

    def _set_aside(
        self, answered: list[tuple[Run, Settlement, Settled]]
    ) -> list[tuple[Run, Settlement, Settled]]:
        """Keep what is busy for a later batch, unless it was lost meanwhile; give the others."""
        busy = [one for one in answered if one[2].answer is SettleAnswer.BUSY]
        for run, settlement, _ in busy:
            if run.number not in self._lost:
                del self._batch[run.number]
                self._busy[run.number] = (run, settlement)
        if not self._busy:
            self._in_vain = 0
        elif self._busy_timer is None:
            self._in_vain += 1
            loop, pause = asyncio.get_running_loop(), _BACKOFF.after(self._in_vain)
            self._busy_timer = loop.call_later(pause, self._ask_again)
        return [one for one in answered if one not in busy] if busy else answered

    def _ask_again(self) -> None:
        self._busy_timer, self._busy_due = None, True
        self._wake()

    async def _write(self) -> list[tuple[Run, Settlement, Settled]]:
        failures = 0
        while True:
            batch = [pair for n, pair in self._batch.items() if n not in self._lost]
            if not batch:
                return []
            try:
                settled = await self._engine.jobs.settle([pair[1] for pair in batch])
                return [(*pair, answer) for pair, answer in zip(batch, settled, strict=True)]
            except StoreError as error:
                events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=True)
            except Exception as error:  # noqa: BLE001 - find what cannot be written
                events.emit(events.SERVICE_ERROR, service=self.name, error=error, expected=False)
                if len(batch) <= 1:
                    # Its lease will not be kept any more: the job comes back by rescue.
                    return []
                return await self._write_singly(batch)
            if self._stopped.is_set():
                return []
            self.report_slow()
            failures += 1
            await runtime.sleep(_BACKOFF.after(failures))

    async def _write_singly(
        self, batch: Sequence[tuple[Run, Settlement]]
    ) -> list[tuple[Run, Settlement, Settled]]:
        written: list[tuple[Run, Settlement, Settled]] = []
        whole = self._batch
        for run, settlement in batch:
            self._batch = {run.number: (run, settlement)}
            written += await self._write()
        self._batch = whole
        return written

    # ── tell ─────────────────────────────────────────────────────────────────────────────────

    async def _tell(self, written: Sequence[tuple[Run, Settlement, Settled]]) -> None:
        finished = False
        due: set[str] = set()
        delays: list[int] = []
        silent = self.reporter is None and not self.tells
        for run, settlement, settled in written:
            if settled.answer is SettleAnswer.LOST:
                events.emit(events.LEASE_LOST, job_id=settled.id, verb="settle")
                continue
            if silent and settled.state is _SUCCEEDED:
                finished = True
                continue
            self._tell_one(run, settlement, settled)
            if settled.state in TERMINAL:
                finished = True
            elif settled.state is JobState.WAITING and lifecycle.is_claimable(settlement.next):
                due.add(queue_topic(run.claim.job.queue, suspect=settlement.next.suspect))
            elif settled.state is JobState.WAITING and settlement.next.delay_ms:
                delays.append(settlement.next.delay_ms)
        if delays:
            self.on_due(min(delays) / 1000)
        if finished:
            await self._engine.wakeup.notify(FINISHED_TOPIC)
        for topic in due:
            await self._engine.wakeup.notify(topic)

    def _tell_one(self, run: Run, settlement: Settlement, settled: Settled) -> None:
        if self.failures is not None:
            self.failures.tell(run.claim.job, settlement, settled.state)
        if self.reporter is not None:
            self.reporter.settled(run.claim, settlement, settled.state, run.exception, run.redact)
        if self.tells:
            started = run.started_at
            seconds = runtime.boottime() - started if started else 0.0
            tell_settled(run.claim, settlement, settled, seconds)

    def _report(self, numbers: list[int]) -> None:
        self._reported.update(numbers)
        self._on_ended(numbers)

    async def _wait(self) -> None:
        if self._stopped.is_set():
            return
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


def hastened(settlement: Settlement, speed: float) -> Settlement:
    """Shorten the delay before the next run, for demonstrations."""
    delay_ms = settlement.next.delay_ms
    if speed == 1 or not delay_ms:
        return settlement
    return replace(
        settlement, next=replace(settlement.next, delay_ms=milliseconds(delay_ms / speed / 1000))
    )


def tell_settled(claim: Claim, settlement: Settlement, settled: Settled, seconds: float) -> None:
    """Tell what a claim came to."""
    job = claim.job
    error = settlement.next.error
    events.emit(
        events.JOB_SETTLED,
        job_id=job.id,
        type=job.type,
        tenant=job.tenant,
        queue=job.queue,
        outcome=settlement.outcome,
        state=None if settled.state is None else settled.state.value,
        seconds=seconds,
        attempt=job.attempt + 1,
        delay_ms=settlement.next.delay_ms,
        reason=settlement.next.reason,
        error=None if error is None else error.text,
    )
