"""Release the jobs of workers that have vanished."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.coordinator.versions import WORKER
from lamplighter.fleet import Fleet
from lamplighter.model import lifecycle
from lamplighter.model.errors import StoreError
from lamplighter.model.job import TERMINAL, Claim, Delivery, JobState
from lamplighter.model.lifecycle import Settlement
from lamplighter.model.outcome import AbandonCause, Abandoned, Outcome, Released
from lamplighter.observability import events
from lamplighter.observability.failures import process_log
from lamplighter.port.store import FINISHED_TOPIC, Engine, queue_topic
from lamplighter.port.values import Expired, SettleAnswer, Settled
from lamplighter.service import Service

BATCH = 500
MOST = 10_000
"""As far as we look behind claims that cannot be moved."""
LONGEST_INTERVAL = 0.5
"""With it, the first pause of one second and the write, a job waits again after lease + 2 s."""
PER_WORKER = 0.005
"""Seconds that each rests between two looks at the store for every worker there is."""
LONGEST_REST = 10.0
"""Not longer, because some workers may have no rescuer, or have just vanished."""

SLACK = 0.2
"""Seconds by which clocks may differ over one interval."""

_LOST = Abandoned(AbandonCause.WORKER_LOST)
_UNCHARGED = Released()


class Rescuer(Service):
    """Find claims whose lease has ended and settle them as abandoned.

    Runs on every node. What it writes is guarded by the fence and by "still expired", so two
    rescuers, or one that acts on old news, change nothing that was renewed or settled meanwhile.
    A job that somebody else has locked is left to a later look.

    Where there are few workers, each looks at every step. Of more than some dozens each looks less
    often, at times of its own, so that all of them together look about 200 times a second: what
    has ended is found by one of them in no more time than before. When most of many vanish at
    once, those that are left look as seldom until the store no longer counts the others. Where
    signs of life tell whether anything has ended, nobody looks while nothing has.
    """

    name = "rescue"
    patience = 120.0

    def __init__(self, engine: Engine, settings: Settings, fleet: Fleet | None = None) -> None:
        super().__init__()
        self._engine = engine
        self._failures = process_log() if settings.log_failures else None
        self._fleet = fleet or Fleet()
        self._share = 0.5 + runtime.random()
        """Of the usual rest: with as many different ones as there are workers, looks are spread."""
        self._rested_from: float | None = None
        self._lease = settings.lease
        self._interval = min(LONGEST_INTERVAL, settings.lease / 4)
        self._batch = min(BATCH, engine.capabilities.max_batch)
        self._limit = BATCH
        self._last_ms: int | None = None
        self._not_before = 0.0
        self._slept = False
        self._looked: float | None = None
        self.rescued = 0
        """How many jobs it has given back."""
        self._seen: frozenset[str] = frozenset()
        self._busy: frozenset[str] = frozenset()
        """Jobs that somebody else had locked at the last look."""

    async def step(self) -> float:
        """Rescue one batch; the next follows at once while batches are full.

        A step that need not look at the store still looks at the clock.
        """
        if self._failures is not None:
            self._failures.tick()
        pause = self._pause_after_jump()
        if pause > 0:
            return min(pause, self._interval)
        if self._may_rest():
            return self._interval
        begun = runtime.boottime()
        expired = await self._engine.jobs.rescue(limit=self._limit)
        self._rested_from = begun
        if self._nobody_could_renew(expired, begun):
            return self._interval
        if not expired:
            self._limit = BATCH
            return self._interval
        decided = self._decided(expired)
        settled: list[Settled] = []
        for start in range(0, len(decided), self._batch):
            settled += await self._settle(decided[start : start + self._batch])
        self._busy = frozenset(one.id for one in settled if one.answer is SettleAnswer.BUSY)
        self._log(expired, decided, settled)
        await self._tell(expired, settled)
        full = len(expired) >= self._limit
        if any(answer.answer is SettleAnswer.DONE for answer in settled):
            self._limit = BATCH
            if full:
                self._rested_from = None
                return 0.0
            return self._interval
        if full:
            # It would only come back the same, the longest overdue first: look behind it.
            self._limit = min(2 * self._limit, MOST)
        return self._interval

    async def stop(self) -> None:
        """End, and log what was held back of failures."""
        await super().stop()
        if self._failures is not None:
            self._failures.close()

    def _may_rest(self) -> bool:
        """Tell whether the looks of the others are enough for now."""
        rest = self._share * min(self._fleet.workers * PER_WORKER, LONGEST_REST)
        if self._rested_from is None or rest <= self._interval:
            return False
        return self._fleet.keeps_watch or runtime.boottime() < self._rested_from + rest

    def _pause_after_jump(self) -> float:
        """Seconds to wait, because the clock made leases look old that nobody could renew.

        Whether the clock was set, the machine slept or this process was stopped: a step that
        comes a lease later than planned says nothing about the workers, who were perhaps stopped
        too. They get one lease to renew. After a shorter standstill, which may have ended leases
        that were not fresh any more, those who slept beside us renew first.
        """
        now_ms, last_ms = runtime.now_ms(), self._last_ms
        self._last_ms = now_ms
        if last_ms is not None:
            late = (now_ms - last_ms) / 1000 - self._interval
            if late > self._lease:
                self._not_before, self._slept = runtime.boottime() + self._lease, True
                events.emit(events.CLOCK_JUMPED, seconds=late)
            elif self._stood_still(late):
                self._not_before = runtime.boottime() + self._lease / 3
        return self._not_before - runtime.boottime()

    def _stood_still(self, late: float) -> bool:
        """Tell whether a step came so late that leases may have ended which nobody could renew.

        Not twice in a row: where every step is late, that is no standstill.
        """
        self._slept = late > self._lease / 3 and not self._slept
        return self._slept

    def _nobody_could_renew(self, expired: Sequence[Expired], begun: float) -> bool:
        """Tell whether leases ended because the store stood still, or its own clock was set.

        What has ended since the last look cannot be overdue for longer than that is ago. A sign of
        life that was told of nothing is a look, too. All who hold claims get one lease to renew
        them.
        """
        quiet_at = self._fleet.quiet_at
        if quiet_at is not None and (self._looked is None or quiet_at > self._looked):
            self._looked, self._seen = quiet_at, frozenset()
        now, looked, seen = runtime.boottime(), self._looked, self._seen
        late = now - begun - self._interval
        if looked is not None:
            fresh = [one.overdue_ms for one in expired if one.claim.job.id not in seen]
            late = max(late, max(fresh, default=0) / 1000 - (now - looked) + self._lease - SLACK)
        if len(expired) < self._limit:
            self._looked = begun
            self._seen = frozenset(one.claim.job.id for one in expired)
        if late <= self._lease:
            # Stopped between the question and the answer: those beside us have to renew first.
            return bool(expired) and self._stood_still(now - begun - self._interval)
        self._not_before, self._slept = now + self._lease, True
        events.emit(events.CLOCK_JUMPED, seconds=late)
        return True

    def _decided(self, expired: Sequence[Expired]) -> list[Settlement]:
        decided: list[Settlement] = []
        for found in expired:
            try:
                outcome = self._outcome(found.claim)
                decided.append(
                    lifecycle.settle(
                        found.claim, outcome, chance=runtime.random(), only_if_expired=True
                    )
                )
            except Exception as error:  # noqa: BLE001 - one broken row must not hide the others
                self._complain(found.claim.job.id, error)
        return decided

    def _outcome(self, claim: Claim) -> Outcome:
        """Charge the job, unless no handler ran or nobody could renew its lease."""
        if claim.worker.startswith(WORKER):
            return _UNCHARGED
        locked = claim.job.id in self._busy
        # Of an at-most-once job it counts whether it was started, not why its lease ended.
        return _UNCHARGED if locked and claim.job.delivery is not Delivery.AT_MOST_ONCE else _LOST

    async def _settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        try:
            return await self._engine.jobs.settle(settlements)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - find the row that cannot be written, keep the others
            settled: list[Settled] = []
            for settlement in settlements:
                try:
                    settled += await self._engine.jobs.settle([settlement])
                except StoreError:
                    raise
                except Exception as error:  # noqa: BLE001
                    self._complain(settlement.id, error)
            return settled

    def _complain(self, job_id: str, error: Exception) -> None:
        events.emit(
            events.SERVICE_ERROR, service=self.name, error=error, expected=False, job_id=job_id
        )

    def _log(
        self, expired: Sequence[Expired], decided: Sequence[Settlement], settled: Sequence[Settled]
    ) -> None:
        if self._failures is None:
            return
        jobs = {found.claim.job.id: found.claim.job for found in expired}
        settlements = {settlement.id: settlement for settlement in decided}
        for answer in settled:
            if answer.answer is SettleAnswer.DONE:
                self._failures.tell(jobs[answer.id], settlements[answer.id], answer.state)

    async def _tell(self, expired: Sequence[Expired], settled: Sequence[Settled]) -> None:
        jobs = {found.claim.job.id: found.claim.job for found in expired}
        done = [answer for answer in settled if answer.answer is SettleAnswer.DONE]
        if not done:
            return
        self.rescued += len(done)
        events.emit(events.JOB_RESCUED, count=len(done))
        back = [jobs[answer.id] for answer in done if answer.state is JobState.WAITING]
        # Who was lost once before is a suspect now.
        topics = {queue_topic(job.queue, suspect=job.suspect or job.losses > 0) for job in back}
        for topic in sorted(topics):
            await self._engine.wakeup.notify(topic)
        if any(answer.state in TERMINAL for answer in done):
            await self._engine.wakeup.notify(FINISHED_TOPIC)
