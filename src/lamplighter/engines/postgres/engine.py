"""Puts the parts together: the engine for `postgresql://`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from lamplighter.engines.postgres import address, installer
from lamplighter.engines.postgres.access import PostgresAccess
from lamplighter.engines.postgres.call import Call
from lamplighter.engines.postgres.pool import Pools
from lamplighter.engines.postgres.rights import NOBODY, Holders
from lamplighter.engines.postgres.verbs import (
    activity,
    inspect,
    inspect_schedules,
    membership,
    rescue,
)
from lamplighter.engines.postgres.verbs import settings as operators
from lamplighter.engines.postgres.verbs.backfill import backfill as begin_backfill
from lamplighter.engines.postgres.verbs.cancel import cancel
from lamplighter.engines.postgres.verbs.check_up import check_up
from lamplighter.engines.postgres.verbs.claim import claim
from lamplighter.engines.postgres.verbs.delete_schedules import delete_schedules
from lamplighter.engines.postgres.verbs.due_schedules import due_schedules
from lamplighter.engines.postgres.verbs.explain import explain
from lamplighter.engines.postgres.verbs.fire import fire
from lamplighter.engines.postgres.verbs.hold import hold
from lamplighter.engines.postgres.verbs.hold_schedules import hold_schedules
from lamplighter.engines.postgres.verbs.prune import prune
from lamplighter.engines.postgres.verbs.purge import purge
from lamplighter.engines.postgres.verbs.put_schedules import put_schedules
from lamplighter.engines.postgres.verbs.record import record
from lamplighter.engines.postgres.verbs.renew import renew
from lamplighter.engines.postgres.verbs.replay import replay
from lamplighter.engines.postgres.verbs.retry import retry
from lamplighter.engines.postgres.verbs.settle import settle
from lamplighter.engines.postgres.verbs.submit import Herald, submit
from lamplighter.engines.postgres.verbs.trigger import trigger
from lamplighter.engines.postgres.verbs.unhold import unhold
from lamplighter.engines.postgres.verbs.unhold_schedules import unhold_schedules
from lamplighter.engines.postgres.wakeup import PostgresWakeup
from lamplighter.model.activity import Minute, Tally
from lamplighter.model.job import Attempt, Claim, JobRecord, NewJob
from lamplighter.model.lifecycle import Settlement
from lamplighter.model.names import check_words
from lamplighter.port.activity import Standing, checked_minutes
from lamplighter.port.capabilities import Capabilities
from lamplighter.port.checkup import Checkup
from lamplighter.port.guards import Closed, bounded, check_note
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
from lamplighter.port.store import DEFAULT_LEASE_MS
from lamplighter.port.values import (
    COUNT_LIMIT,
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
    name="postgresql",
    many_machines=True,
    push_wakeup=True,
    durable_submit=True,
    loss_window="none while the server's disk lives and synchronous_commit is on; after a failover "
    "to an asynchronous standby, what had not reached it",
    max_batch=10_000,
    roles=True,
)
_MOST_RUNS = 100
"""How many runs a plan may have."""
FORGETFUL = replace(
    CAPABILITIES,
    durable_submit=False,
    loss_window="as the server's settings have it, whatever they are: durability=none in the url",
)


class PostgresEngine:
    """The engine for many machines.

    ``clock_ms`` is for tests: each call then tells the store what time it is.
    """

    def __init__(
        self, url: str, clock_ms: Callable[[], int] | None = None, deadline: float = 30.0
    ) -> None:
        self._address = address.parse(url)
        declared = CAPABILITIES if self._address.durable else FORGETFUL
        self.capabilities = replace(declared, push_wakeup=self._address.listen)
        self._clock_ms = clock_ms
        self._deadline = deadline
        # The parts exist only between open and close; using them before says so.
        self._closed = cast("Any", Closed(self._address.shown))
        self.jobs: PostgresJobs = self._closed
        self.schedules: PostgresSchedules = self._closed
        self.membership: PostgresMembership = self._closed
        self.settings: PostgresSettings = self._closed
        self.activity: PostgresActivity = self._closed
        self.access: PostgresAccess = self._closed
        self.inspector: PostgresInspector = self._closed
        self.wakeup: PostgresWakeup = self._closed
        self._pools: Pools | None = None

    async def open(self, *, create: bool = True) -> None:
        if self._pools is not None:
            return
        await self._prepare(migrate=False, create=create)
        pools = self._pools = Pools(self._address, self._deadline, self._clock_ms)
        self.schedules = PostgresSchedules(pools)
        self.membership = PostgresMembership(pools)
        self.settings = PostgresSettings(pools)
        self.activity = PostgresActivity(pools)
        self.access = PostgresAccess(pools, CAPABILITIES.max_batch)
        self.inspector = PostgresInspector(pools)
        self.wakeup = PostgresWakeup(self._address, pools)
        # With a clock of its own a call is part of a transaction, which cannot commit half way.
        self.jobs = PostgresJobs(pools, self.wakeup if self._clock_ms is None else None)

    async def close(self) -> None:
        pools, self._pools = self._pools, None
        if pools is None:
            return
        await self.wakeup.close()
        await pools.close()

    async def migrate(
        self, *, run: Sequence[str] = (), read: Sequence[str] = ()
    ) -> tuple[int, int]:
        return await self._prepare(migrate=True, grants=Holders(tuple(run), tuple(read)))

    async def grant(self, *, run: Sequence[str] = (), read: Sequence[str] = ()) -> None:
        await installer.grant(self._address, self._deadline, Holders(tuple(run), tuple(read)))

    async def check_up(self, *, lease_ms: int = DEFAULT_LEASE_MS) -> Checkup:
        return await check_up(self._address, self._deadline, lease_ms)

    async def _prepare(
        self, *, migrate: bool, create: bool = True, grants: Holders = NOBODY
    ) -> tuple[int, int]:
        return await installer.prepare(
            self._address,
            self._deadline,
            migrate=migrate,
            create=create,
            test_clock=self._clock_ms is not None,
            grants=grants,
        )


class PostgresJobs:
    """The verbs that move jobs."""

    def __init__(self, call: Call, herald: Herald | None) -> None:
        self._call = call
        self._herald = herald

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        return await submit(self._call, _bounded(jobs), self._herald) if jobs else []

    async def claim(self, request: ClaimRequest) -> Claimed:
        return await claim(self._call, request)

    async def renew(self, leases: Sequence[Renewal], lease_ms: int) -> list[Renewed]:
        return await renew(self._call, _bounded(leases), lease_ms) if leases else []

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        return await settle(self._call, _bounded(settlements)) if settlements else []

    async def record(self, recordings: Sequence[Recording]) -> list[Recorded]:
        return await record(self._call, _bounded(recordings)) if recordings else []

    async def rescue(self, limit: int) -> list[Expired]:
        return await rescue.rescue(self._call, limit)

    async def claims_of(self, worker: str) -> list[Claim]:
        return await rescue.claims_of(self._call, worker)

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
        self,
        verb: Callable[[Call, Sequence[str], str, str], Awaitable[list[Changed]]],
        ids: Sequence[str],
        by: str,
        reason: str,
    ) -> list[Changed]:
        check_note(by, reason)
        return await verb(self._call, _bounded(ids), by, reason) if ids else []

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        return await prune(self._call, retention, limit)


class PostgresSchedules:
    """The verbs that keep and fire schedules."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def put_schedules(self, schedules: Sequence[NewSchedule], *, by: str) -> list[Put]:
        check_words("operator's name", by)
        return await put_schedules(self._call, _bounded(schedules)) if schedules else []

    async def due_schedules(
        self, *, limit: int, lease_ms: int, newest_first: bool = False
    ) -> DueSchedules:
        return await due_schedules(self._call, limit, lease_ms, newest_first=newest_first)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        for one in firings:
            bounded(one.runs, _MOST_RUNS)
        return await fire(self._call, _bounded(firings)) if firings else []

    async def trigger(
        self, schedule_id: str, run: Run, *, by: str, reason: str, tenant: str | None = None
    ) -> Triggered:
        check_note(by, reason)
        return await trigger(self._call, schedule_id, run, by, reason, tenant=tenant)

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
        return await begin_backfill(self._call, schedule_id, backfill, tenant)

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
        verb: Callable[
            [Call, Sequence[str], str, str, str | None], Awaitable[list[ScheduleChanged]]
        ],
        ids: Sequence[str],
        by: str,
        reason: str,
        tenant: str | None,
    ) -> list[ScheduleChanged]:
        check_note(by, reason)
        return await verb(self._call, _bounded(ids), by, reason, tenant) if ids else []

    async def schedule(self, schedule_id: str) -> ScheduleRecord | None:
        return await inspect_schedules.schedule(self._call, schedule_id)

    async def schedules(
        self, which: ScheduleFilter, *, limit: int, cursor: str | None = None
    ) -> SchedulePage:
        return await inspect_schedules.schedules(self._call, which, limit, cursor)

    async def runs(self, schedule_id: str, *, limit: int, cursor: str | None = None) -> RunPage:
        return await inspect_schedules.runs(self._call, schedule_id, limit, cursor)


class PostgresMembership:
    """Who is alive."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def join(self, worker: NewWorker) -> Beat:
        return await membership.join(self._call, worker)

    async def beat(self, worker: str, running: int) -> Beat:
        return await membership.beat(self._call, worker, running)

    async def leave(self, worker: str) -> None:
        await membership.leave(self._call, worker)

    async def lead(self, role: str, holder: str, term_ms: int) -> bool:
        return await membership.lead(self._call, role, holder, term_ms)


class PostgresSettings:
    """What operators set."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def put_queue(self, name: str, settings: QueueSettings, *, by: str, reason: str) -> None:
        check_note(by, reason)
        await operators.put_queue(self._call, name, settings, by, reason)

    async def put_tenant(
        self, name: str, settings: TenantSettings, *, by: str, reason: str
    ) -> None:
        check_note(by, reason)
        await operators.put_tenant(self._call, name, settings, by, reason)

    async def put_type(self, name: str, settings: TypeSettings, *, by: str, reason: str) -> None:
        check_note(by, reason)
        await operators.put_type(self._call, name, settings, by, reason)


class PostgresActivity:
    """What workers did and what waits, as a whole."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def tally(self, worker: str, number: int, tally: Tally) -> bool:
        return await activity.tally(self._call, worker, number, tally)

    async def activity(self, minutes: int) -> list[Minute]:
        return await activity.activity(self._call, checked_minutes(minutes))

    async def standing(self) -> Standing:
        return await activity.standing(self._call)


class PostgresInspector:
    """Reads."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def job(self, job_id: str) -> JobRecord | None:
        return await inspect.job(self._call, job_id)

    async def jobs(self, which: JobFilter, *, limit: int, cursor: str | None = None) -> JobPage:
        return await inspect.jobs(self._call, which, limit, cursor)

    async def explain(self, job_id: str) -> Explanation | None:
        return await explain(self._call, job_id)

    async def counts(self) -> dict[str, int]:
        return await inspect.counts(self._call)

    async def queues(self, *, most: int = COUNT_LIMIT) -> list[QueueInfo]:
        return await inspect.queues(self._call, most)

    async def queue(self, name: str) -> QueueInfo | None:
        return await inspect.queue(self._call, name)

    async def tenants(self) -> list[TenantInfo]:
        return await inspect.tenants(self._call)

    async def tenant(self, name: str) -> TenantInfo | None:
        return await inspect.tenant(self._call, name)

    async def types(self) -> list[TypeRow]:
        return await inspect.types(self._call)

    async def workers(self) -> list[WorkerInfo]:
        return await inspect.workers(self._call)

    async def attempts(self, job_id: str) -> list[Attempt]:
        return await inspect.attempts(self._call, job_id)

    async def logs(
        self,
        job_id: str,
        *,
        tenant: str | None = None,
        after: tuple[int, int] | None = None,
        limit: int = 100,
    ) -> list[LogPiece]:
        return await inspect.logs(self._call, job_id, tenant, after, limit)

    async def dead_groups(self, which: JobFilter) -> list[DeadGroup]:
        return await inspect.dead_groups(self._call, which)


def _bounded(items: Sequence[T]) -> Sequence[T]:
    return bounded(items, CAPABILITIES.max_batch)
