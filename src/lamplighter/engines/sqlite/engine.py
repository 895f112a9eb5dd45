"""Puts the parts together: the engine for `sqlite:///`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lamplighter.engines.sqlite import database
from lamplighter.engines.sqlite.access import SqliteAccess
from lamplighter.engines.sqlite.reader import Reader
from lamplighter.engines.sqlite.verbs import (
    activity,
    inspect,
    inspect_schedules,
    membership,
    rescue,
)
from lamplighter.engines.sqlite.verbs import settings as operators
from lamplighter.engines.sqlite.verbs.backfill import begin_backfill
from lamplighter.engines.sqlite.verbs.cancel import cancel
from lamplighter.engines.sqlite.verbs.check_up import check_up
from lamplighter.engines.sqlite.verbs.claim import claim
from lamplighter.engines.sqlite.verbs.delete_schedules import delete_schedules
from lamplighter.engines.sqlite.verbs.due_schedules import due_schedules
from lamplighter.engines.sqlite.verbs.explain import explain
from lamplighter.engines.sqlite.verbs.fire import fire
from lamplighter.engines.sqlite.verbs.hold import hold
from lamplighter.engines.sqlite.verbs.hold_schedules import hold_schedules
from lamplighter.engines.sqlite.verbs.prune import prune
from lamplighter.engines.sqlite.verbs.purge import purge
from lamplighter.engines.sqlite.verbs.put_schedules import put_schedules
from lamplighter.engines.sqlite.verbs.record import record
from lamplighter.engines.sqlite.verbs.renew import renew
from lamplighter.engines.sqlite.verbs.replay import replay
from lamplighter.engines.sqlite.verbs.retry import retry
from lamplighter.engines.sqlite.verbs.settle import settle
from lamplighter.engines.sqlite.verbs.submit import submit
from lamplighter.engines.sqlite.verbs.trigger import trigger
from lamplighter.engines.sqlite.verbs.unhold import unhold
from lamplighter.engines.sqlite.verbs.unhold_schedules import unhold_schedules
from lamplighter.engines.sqlite.wakeup import SqliteWakeup
from lamplighter.engines.sqlite.writer import Writer
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import check_words
from lamplighter.port.activity import checked_minutes
from lamplighter.port.capabilities import Capabilities
from lamplighter.port.guards import Closed, bounded, check_note
from lamplighter.port.store import DEFAULT_LEASE_MS
from lamplighter.port.values import COUNT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lamplighter.model.activity import Minute, Tally
    from lamplighter.model.job import Attempt, Claim, JobRecord, NewJob
    from lamplighter.model.lifecycle import Settlement
    from lamplighter.port.activity import Standing
    from lamplighter.port.checkup import Checkup
    from lamplighter.port.schedules import (
        Backfill,
        DueSchedules,
        Fired,
        Firing,
        NewSchedule,
        Put,
        Run,
        RunPage,
        ScheduleChanged,
        ScheduleFilter,
        SchedulePage,
        ScheduleRecord,
        Triggered,
    )
    from lamplighter.port.values import (
        Beat,
        Changed,
        Claimed,
        ClaimRequest,
        DeadGroup,
        Expired,
        Explanation,
        JobFilter,
        JobPage,
        LogPiece,
        NewWorker,
        Pruned,
        QueueInfo,
        QueueSettings,
        Recorded,
        Recording,
        Renewal,
        Renewed,
        Retention,
        Settled,
        Submitted,
        TenantInfo,
        TenantSettings,
        TypeRow,
        TypeSettings,
        WorkerInfo,
    )

T = TypeVar("T")

CAPABILITIES = Capabilities(
    name="sqlite",
    many_machines=False,
    push_wakeup=True,
    durable_submit=True,
    loss_window="none, unless the disk lies about having written (WAL, synchronous=FULL)",
    max_batch=10_000,
)
RUN_LIMIT = 100
"""Runs that one plan may have."""


class SqliteEngine:
    """The embedded engine."""

    capabilities = CAPABILITIES

    def __init__(self, url: str, clock_ms: Callable[[], int], deadline: float) -> None:
        self._path = database.path_of(url)
        self._clock_ms = clock_ms
        self._deadline = deadline
        # The parts exist only between open and close; using them before says so.
        self._closed = cast("Any", Closed(str(self._path)))
        self.jobs: SqliteJobs = self._closed
        self.schedules: SqliteSchedules = self._closed
        self.membership: SqliteMembership = self._closed
        self.settings: SqliteSettings = self._closed
        self.activity: SqliteActivity = self._closed
        self.access: SqliteAccess = self._closed
        self.inspector: SqliteInspector = self._closed
        self.wakeup: SqliteWakeup = self._closed
        self._writer: Writer | None = None
        self._reader: Reader | None = None

    async def open(self, *, create: bool = True) -> None:
        if self._writer is not None:
            return
        await self._prepare(migrate=False, create=create)
        writer = self._writer = Writer(self._path, self._clock_ms, self._deadline)
        reader = self._reader = Reader(self._path, self._clock_ms)
        self.jobs = SqliteJobs(writer, reader)
        self.schedules = SqliteSchedules(writer, reader)
        self.membership = SqliteMembership(writer)
        self.settings = SqliteSettings(writer)
        self.activity = SqliteActivity(writer, reader)
        self.access = SqliteAccess(writer, reader, CAPABILITIES.max_batch)
        self.inspector = SqliteInspector(reader)
        self.wakeup = SqliteWakeup(self._path, reader.data_version)

    async def close(self) -> None:
        writer, reader, self._writer, self._reader = self._writer, self._reader, None, None
        if writer is None or reader is None:
            return
        self.wakeup.close()
        await writer.close()
        await reader.close()

    async def migrate(
        self, *, run: Sequence[str] = (), read: Sequence[str] = ()
    ) -> tuple[int, int]:
        await self.grant(run=run, read=read)
        return await self._prepare(migrate=True)

    async def grant(self, *, run: Sequence[str] = (), read: Sequence[str] = ()) -> None:
        if run or read:
            raise InvalidOption(
                f"SQLite knows no users, so `{[*run, *read][0]}` cannot be given rights",
                hint=f"let the system do it: chown and chmod {self._path}",
                value=[*run, *read][0],
            )

    async def check_up(self, *, lease_ms: int = DEFAULT_LEASE_MS) -> Checkup:
        return await asyncio.to_thread(check_up, self._path, self._clock_ms, lease_ms)

    async def _prepare(self, *, migrate: bool, create: bool = True) -> tuple[int, int]:
        """Check and fill the file, in a thread: both may wait for the disk or for others."""

        def prepare() -> tuple[int, int]:
            database.check_place(self._path)
            if not create:
                database.check_there(self._path)
            return database.prepare(self._path, self._clock_ms, migrate=migrate)

        return await asyncio.to_thread(prepare)


class SqliteJobs:
    """The verbs that move jobs."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        if not jobs:
            return []
        return await self._writer.run(partial(submit, jobs=_bounded(jobs)))

    async def claim(self, request: ClaimRequest) -> Claimed:
        return await self._writer.run(partial(claim, request=request), durable=False)

    async def renew(self, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
        if not leases:
            return []
        work = partial(renew, leases=_bounded(leases), lease_ms=lease_ms)
        return await self._writer.run(work, durable=False)

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        if not settlements:
            return []
        return await self._writer.run(partial(settle, settlements=_bounded(settlements)))

    async def record(self, recordings: Sequence[Recording]) -> list[Recorded]:
        if not recordings:
            return []
        work = partial(record, recordings=_bounded(recordings))
        return await self._writer.run(work, durable=False)

    async def rescue(self, limit: int) -> list[Expired]:
        if await self._reader.run(rescue.clock_went_back):
            await self._writer.run(rescue.cut_leases, durable=False)
        return await self._reader.run(partial(rescue.rescue, limit=limit))

    async def claims_of(self, worker: str) -> list[Claim]:
        return await self._reader.run(partial(rescue.claims_of, worker=worker))

    async def cancel(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        return await self._operate(cancel, ids, by, reason)

    async def hold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        return await self._operate(hold, ids, by, reason)

    async def unhold(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        return await self._operate(unhold, ids, by, reason)

    async def retry(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        return await self._operate(retry, ids, by, reason)

    async def replay(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        return await self._operate(replay, ids, by, reason)

    async def purge(self, ids: Sequence[str], *, by: str, reason: str) -> list[Changed]:
        return await self._operate(purge, ids, by, reason)

    async def _operate(
        self, verb: Callable[..., list[Changed]], ids: Sequence[str], by: str, reason: str
    ) -> list[Changed]:
        check_note(by, reason)
        return await self._writer.run(partial(verb, ids=_bounded(ids), by=by, reason=reason))

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        return await self._writer.run(
            partial(prune, retention=retention, limit=limit), durable=False
        )


class SqliteSchedules:
    """The verbs that keep and fire schedules."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def put_schedules(self, schedules: Sequence[NewSchedule], *, by: str) -> list[Put]:
        check_words("operator's name", by)
        if not schedules:
            return []
        return await self._writer.run(partial(put_schedules, schedules=_bounded(schedules)))

    async def due_schedules(
        self, *, limit: int, lease_ms: int, newest_first: bool = False
    ) -> DueSchedules:
        work = partial(due_schedules, limit=limit, lease_ms=lease_ms, newest_first=newest_first)
        return await self._writer.run(work, durable=False)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        if not firings:
            return []
        for firing in _bounded(firings):
            bounded(firing.runs, RUN_LIMIT)
        return await self._writer.run(partial(fire, firings=firings))

    async def trigger(
        self, schedule_id: str, run: Run, *, by: str, reason: str, tenant: str | None = None
    ) -> Triggered:
        check_note(by, reason)
        work = partial(trigger, schedule_id=schedule_id, run=run, tenant=tenant)
        return await self._writer.run(work)

    async def backfill(
        self,
        schedule_id: str,
        backfill: Backfill,
        *,
        by: str,
        reason: str,
        tenant: str | None = None,
    ) -> ScheduleChanged:
        check_note(by, reason)
        work = partial(begin_backfill, schedule_id=schedule_id, backfill=backfill, tenant=tenant)
        return await self._writer.run(work)

    async def hold_schedules(
        self, ids: Sequence[str], *, by: str, reason: str, tenant: str | None = None
    ) -> list[ScheduleChanged]:
        return await self._operate(hold_schedules, ids, by, reason, tenant)

    async def unhold_schedules(
        self, ids: Sequence[str], *, by: str, reason: str, tenant: str | None = None
    ) -> list[ScheduleChanged]:
        return await self._operate(unhold_schedules, ids, by, reason, tenant)

    async def delete_schedules(
        self, ids: Sequence[str], *, by: str, reason: str, tenant: str | None = None
    ) -> list[ScheduleChanged]:
        return await self._operate(delete_schedules, ids, by, reason, tenant)

    async def _operate(
        self,
        verb: Callable[..., list[ScheduleChanged]],
        ids: Sequence[str],
        by: str,
        reason: str,
        tenant: str | None,
    ) -> list[ScheduleChanged]:
        check_note(by, reason)
        work = partial(verb, ids=_bounded(ids), by=by, reason=reason, tenant=tenant)
        return await self._writer.run(work)

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        return await self._reader.run(partial(inspect_schedules.schedule, schedule_id=schedule_id))

    async def schedules(
        self, which: ScheduleFilter, *, limit: int, cursor: str | None = None
    ) -> SchedulePage:
        work = partial(inspect_schedules.schedules, which=which, limit=limit, cursor=cursor)
        return await self._reader.run(work)

    async def runs(self, schedule_id: str, *, limit: int, cursor: str | None = None) -> RunPage:
        work = partial(inspect_schedules.runs, schedule_id=schedule_id, limit=limit, cursor=cursor)
        return await self._reader.run(work)


class SqliteMembership:
    """Who is alive."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def join(self, worker: NewWorker) -> Beat:
        return await self._writer.run(partial(membership.join, worker=worker), durable=False)

    async def beat(self, worker: str, running: int) -> Beat:
        work = partial(membership.beat, worker=worker, running=running)
        return await self._writer.run(work, durable=False)

    async def leave(self, worker: str) -> None:
        await self._writer.run(partial(membership.leave, worker=worker), durable=False)

    async def lead(self, role: str, holder: str, term_ms: int) -> bool:
        work = partial(membership.lead, role=role, holder=holder, term_ms=term_ms)
        return await self._writer.run(work, durable=False)


class SqliteSettings:
    """What operators set."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def put_queue(self, name: str, settings: QueueSettings, *, by: str, reason: str) -> None:
        check_note(by, reason)
        work = partial(operators.put_queue, name=name, settings=settings, by=by, reason=reason)
        await self._writer.run(work)

    async def put_tenant(
        self, name: str, settings: TenantSettings, *, by: str, reason: str
    ) -> None:
        check_note(by, reason)
        work = partial(operators.put_tenant, name=name, settings=settings, by=by, reason=reason)
        await self._writer.run(work)

    async def put_type(self, name: str, settings: TypeSettings, *, by: str, reason: str) -> None:
        check_note(by, reason)
        work = partial(operators.put_type, name=name, settings=settings, by=by, reason=reason)
        await self._writer.run(work)


class SqliteActivity:
    """What workers did and what waits, as a whole."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader

    async def tally(self, worker: str, number: int, tally: Tally) -> bool:
        work = partial(activity.tally, worker=worker, number=number, tally=tally)
        return await self._writer.run(work, durable=False)

    async def activity(self, minutes: int) -> list[Minute]:
        work = partial(activity.activity, minutes=checked_minutes(minutes))
        return await self._reader.run(work)

    async def standing(self) -> Standing:
        return await self._reader.run(activity.standing)


class SqliteInspector:
    """Reads."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def job(self, job_id: str) -> JobRecord | None:
        return await self._reader.run(partial(inspect.job, job_id=job_id))

    async def jobs(self, which: JobFilter, *, limit: int, cursor: str | None = None) -> JobPage:
        work = partial(inspect.jobs, which=which, limit=limit, cursor=cursor)
        return await self._reader.run(work)

    async def explain(self, job_id: str) -> Explanation | None:
        return await self._reader.run(partial(explain, job_id=job_id))

    async def counts(self) -> dict[str, int]:
        return await self._reader.run(inspect.counts)

    async def queues(self, *, most: int = COUNT_LIMIT) -> list[QueueInfo]:
        return await self._reader.run(partial(inspect.queues, most=most))

    async def queue(self, name: str) -> QueueInfo | None:
        return await self._reader.run(partial(inspect.queue, name=name))

    async def tenants(self) -> list[TenantInfo]:
        return await self._reader.run(inspect.tenants)

    async def tenant(self, name: str) -> TenantInfo | None:
        return await self._reader.run(partial(inspect.tenant, name=name))

    async def types(self) -> list[TypeRow]:
        return await self._reader.run(inspect.types)

    async def workers(self) -> list[WorkerInfo]:
        return await self._reader.run(inspect.workers)

    async def attempts(self, job_id: str) -> list[Attempt]:
        return await self._reader.run(partial(inspect.attempts, job_id=job_id))

    async def logs(
        self,
        job_id: str,
        *,
        tenant: str | None = None,
        after: tuple[int, int] | None = None,
        limit: int = 100,
    ) -> list[LogPiece]:
        work = partial(inspect.logs, job_id=job_id, tenant=tenant, after=after, limit=limit)
        return await self._reader.run(work)

    async def dead_groups(self, which: JobFilter) -> list[DeadGroup]:
        return await self._reader.run(partial(inspect.dead_groups, which=which))


def _bounded(items: Sequence[T]) -> Sequence[T]:
    return bounded(items, CAPABILITIES.max_batch)
