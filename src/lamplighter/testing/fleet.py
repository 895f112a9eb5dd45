"""The workers and the coordinator of a test: claim, run, settle and rescue, when told to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from lamplighter import hooks, runtime, secrecy
from lamplighter.app import App
from lamplighter.coordinator import Firer, Rescuer
from lamplighter.model import lifecycle
from lamplighter.model.filters import Filter
from lamplighter.model.job import ALONE, TERMINAL, Claim, Delivery, JobRecord, JobState
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import DEFAULT_QUEUE
from lamplighter.port.store import FINISHED_TOPIC, Engine, queue_topic
from lamplighter.port.values import Claimed, ClaimRequest, Recording, Renewal, RenewAnswer
from lamplighter.testing.clock import Clock
from lamplighter.testing.errors import NeverIdle
from lamplighter.testing.perform import Performed, perform
from lamplighter.testing.summary import Ran, Summary, described
from lamplighter.worker.reporter import make_report
from lamplighter.worker.run import Stop

MOST_RUNS = 1_000
"""More attempts than that, with no end in sight, are taken for a job that never has one."""
BATCH = 500
WORKER = "test"


class Fleet:
    """Everything that would run beside the program, on the engine of the running loop."""

    def __init__(self, app: App, engine: Engine, clock: Clock) -> None:
        self._app = app
        self._engine = engine
        self._clock = clock

    # ── work ─────────────────────────────────────────────────────────────────────────────────

    async def drain(self, queue: str | None, limit: int | None) -> Summary:
        """Run what is due, one after the other, in the order in which the store hands it out."""
        runs: list[Ran] = []
        poll = await self._drain(runs, queue, limit, MOST_RUNS if limit is None else limit)
        return Summary(tuple(runs), idle=poll != 0)

    async def run_until_idle(self, max_time: float | None) -> Summary:
        """Run what is due and move the clock to what is due next, until nothing will be.

        Schedules are fired on the way. Most of them have no end, so that without ``max_time`` the
        clock does not move for them alone.
        """
        runs: list[Ran] = []
        clock, began = self._clock, self._clock.now()
        end = None if max_time is None else began + timedelta(seconds=max_time)
        await self._app.schedules.put_declared(by="test")
        while True:
            await self.rescue()
            await self.fire()
            # With an end, only a clock that no longer moves would go on for ever.
            most = MOST_RUNS if end is None else len(runs) + MOST_RUNS
            wait_ms = await self._until_next(await self._drain(runs, None, None, most))
            fired, schedule_ms = await self.fire()
            if fired:
                continue
            idle = wait_ms is None
            waits = [ms for ms in (wait_ms, schedule_ms) if ms is not None]
            if not waits or (idle and end is None):
                break
            following = clock.now() + timedelta(milliseconds=max(1, min(waits)))
            if end is not None and following > end:
                # A handler may have moved the clock past the end itself.
                clock.move_to(max(end, clock.now()))
                break
            clock.move_to(following)
        return Summary(tuple(runs), passed=clock.now() - began, idle=idle)

    async def fire(self) -> tuple[int, int | None]:
        """Make jobs of what schedules say is due.

        Returns how many, and the milliseconds until a schedule is due again; None: none will be.
        """
        firer = Firer(self._engine, self._app.settings)
        found, wait_ms = await firer.fire_batch()
        while found:
            found, wait_ms = await firer.fire_batch()
        return firer.counts.fired, wait_ms

    async def _drain(
        self, runs: list[Ran], queue: str | None, limit: int | None, most: int
    ) -> int | None:
        """Run what is due; gives the milliseconds until something else is, None for never."""
        while limit is None or len(runs) < limit:
            claimed = await self.claim(queue=queue)
            if claimed.claims:
                runs.append(await self._run(claimed.claims[0]))
                _check_end(runs, most)
            elif claimed.poll_after_ms != 0:
                return claimed.poll_after_ms
        return 0

    async def _until_next(self, poll_ms: int | None) -> int | None:
        """Milliseconds until a job falls due or a lease ends; None if neither will happen."""
        now = self._clock.now_ms()
        ends = [record.expires_at_ms for record in await self._records("running", "cancelling")]
        waits = [end - now for end in ends if end is not None]
        if poll_ms is not None:
            waits.append(poll_ms)
        return max(1, min(waits)) if waits else None

    # ── one job ──────────────────────────────────────────────────────────────────────────────

    async def claim(
        self, *, queue: str | None = None, type: str | None = None, worker: str = WORKER
    ) -> Claimed:
        """Take one job that is due, as a worker would that knows all types of the app."""
        asked = [queue] if queue is not None else await self._queues()
        return await self._engine.jobs.claim(
            ClaimRequest(
                nonce=runtime.nonce(),
                worker=worker,
                queues=tuple((name, 1) for name in asked),
                types=self._app.registry.names() if type is None else (type,),
                limit=1,
                lease_ms=milliseconds(self._app.settings.lease),
                requirements=("", ALONE),
            )
        )

    async def perform(self, claim: Claim) -> Performed:
        """Run the handler, and stop it when it is cancelled or taken away."""
        if claim.job.delivery is Delivery.AT_MOST_ONCE:
            await self._engine.jobs.record([Recording(claim.job.id, claim.fence, started=True)])

        async def look() -> Stop | None:
            lease_ms = milliseconds(self._app.settings.lease)
            renewal = Renewal(claim.job.id, claim.fence)
            (renewed,) = await self._engine.jobs.renew([renewal], lease_ms)
            if renewed.answer is RenewAnswer.LOST:
                return Stop.LOST
            return Stop.CANCEL if renewed.cancel_requested else None

        return await perform(claim, self._app.registry, self._app.settings, look)

    async def _run(self, claim: Claim) -> Ran:
        performed = await self.perform(claim)
        state: JobState | None = None
        if performed.outcome is not None:
            job_type = self._app.registry.get(claim.job.type)
            # No dice here either. A retry function that raises fails the test, which should know.
            settlement = lifecycle.settle(claim, performed.outcome, retry=job_type.retry)
            settlement = replace(settlement, journal=performed.journal)
            (settled,) = await self._engine.jobs.settle([settlement])
            state = settled.state
            await self._tell(claim.job.queue, state)
            for hook in self._app.registry.hooks.wanted(settlement, state):
                known = secrecy.all_known(claim, job_type.secrets)
                redact = secrecy.redactor(claim.job.args, known.job.extras.secrets)
                report = make_report(known, settlement, state, performed.exception, redact)
                await hooks.call(hook, report)
        return Ran(
            id=claim.job.id,
            type=claim.job.type,
            attempt=claim.job.attempt + 1,
            outcome=performed.outcome,
            state=state,
            exception=performed.exception,
            progress=None if performed.journal is None else performed.journal.progress,
        )

    async def _tell(self, queue: str, state: JobState | None) -> None:
        """Wake whoever waits for a result in the same test."""
        topic = FINISHED_TOPIC if state in TERMINAL else queue_topic(queue)
        await self._engine.wakeup.notify(topic)

    # ── order ────────────────────────────────────────────────────────────────────────────────

    async def rescue(self) -> list[JobRecord]:
        """Release the jobs whose lease has ended; return them as they are afterwards."""
        rescued: dict[str, None] = {}
        while found := await self._engine.jobs.rescue(limit=BATCH):
            ids = [expired.claim.job.id for expired in found]
            if rescued.keys() >= set(ids):
                break
            rescued.update(dict.fromkeys(ids))
            # A new one each time: it has seen no clock yet that could have jumped.
            await Rescuer(self._engine, self._app.settings).step()
        records = [await self._engine.inspector.job(job_id) for job_id in rescued]
        return [record for record in records if record is not None]

    # ── reads ────────────────────────────────────────────────────────────────────────────────

    async def records(self, type: str | None = None) -> list[JobRecord]:
        """Return all jobs, of one type or of any, in the order they were submitted."""
        return (await self._records(types=() if type is None else (type,)))[::-1]

    async def _records(self, *statuses: str, types: Sequence[str] = ()) -> list[JobRecord]:
        which = Filter(statuses=statuses, types=tuple(types))
        found: list[JobRecord] = []
        cursor: str | None = None
        while True:
            page = await self._engine.inspector.jobs(which, limit=BATCH, cursor=cursor)
            found += page.jobs
            cursor = page.cursor
            if cursor is None:
                return found

    async def _queues(self) -> list[str]:
        stored = (queue.name for queue in await self._engine.inspector.queues())
        known = (info.queue for info in self._app.registry.infos())
        return sorted({DEFAULT_QUEUE, *stored, *known})


def _check_end(runs: Sequence[Ran], most: int) -> None:
    if len(runs) > most:
        raise NeverIdle(
            f"jobs kept falling due: {described(runs[-3:])} at the end of {len(runs):,}",
            hint="a job that snoozes or submits itself has no end; say how far to go with "
            "`drain(limit=…)` or `run_until_idle(max_time=…)`",
            value=len(runs),
        )
