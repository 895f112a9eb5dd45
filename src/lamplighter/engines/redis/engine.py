"""Puts the parts together: the engine for `redis://`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from lamplighter.engines.redis import address, inputs, installer, server
from lamplighter.engines.redis.access import RedisAccess
from lamplighter.engines.redis.call import Call
from lamplighter.engines.redis.faults import key_pattern
from lamplighter.engines.redis.promises import CAPABILITIES, DECLARED
from lamplighter.engines.redis.transport import Transport
from lamplighter.engines.redis.verbs import (
    activity,
    inspect,
    inspect_schedules,
    membership,
    rescue,
)
from lamplighter.engines.redis.verbs import settings as operators
from lamplighter.engines.redis.verbs.backfill import begin_backfill
from lamplighter.engines.redis.verbs.cancel import cancel
from lamplighter.engines.redis.verbs.check_up import check_up
from lamplighter.engines.redis.verbs.claim import claim
from lamplighter.engines.redis.verbs.delete_schedules import delete_schedules
from lamplighter.engines.redis.verbs.due_schedules import due_schedules
from lamplighter.engines.redis.verbs.explain import explain
from lamplighter.engines.redis.verbs.fire import fire
from lamplighter.engines.redis.verbs.hold import hold
from lamplighter.engines.redis.verbs.hold_schedules import hold_schedules
from lamplighter.engines.redis.verbs.prune import prune
from lamplighter.engines.redis.verbs.purge import purge
from lamplighter.engines.redis.verbs.put_schedules import put_schedules
from lamplighter.engines.redis.verbs.record import record
from lamplighter.engines.redis.verbs.renew import renew
from lamplighter.engines.redis.verbs.replay import replay
from lamplighter.engines.redis.verbs.retry import retry
from lamplighter.engines.redis.verbs.settle import settle
from lamplighter.engines.redis.verbs.submit import submit
from lamplighter.engines.redis.verbs.trigger import trigger
from lamplighter.engines.redis.verbs.unhold import unhold
from lamplighter.engines.redis.verbs.unhold_schedules import unhold_schedules
from lamplighter.engines.redis.wakeup import RedisWakeup
from lamplighter.model.activity import Minute, Tally
from lamplighter.model.errors import InvalidOption
from lamplighter.model.job import Attempt, Claim, Delivery, JobRecord, NewJob
from lamplighter.model.lifecycle import Settlement
from lamplighter.model.names import check_words
from lamplighter.port.activity import Standing, checked_minutes
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

__all__ = ["CAPABILITIES", "RedisEngine"]

T = TypeVar("T")

_ONCE = Delivery.AT_MOST_ONCE


class RedisEngine:
    """The engine in memory.

    ``clock_ms`` is for tests: each call then tells the store what time it is.
    """

    def __init__(
        self, url: str, clock_ms: Callable[[], int] | None = None, deadline: float = 30.0
    ) -> None:
        self._address = address.parse(url)
        self.capabilities = DECLARED[self._address.durability]
        self._clock_ms = clock_ms
        self._deadline = deadline
        # The parts exist only between open and close; using them before says so.
        self._closed = cast("Any", Closed(self._address.shown))
        self.jobs: RedisJobs = self._closed
        self.schedules: RedisSchedules = self._closed
        self.membership: RedisMembership = self._closed
        self.settings: RedisSettings = self._closed
        self.activity: RedisActivity = self._closed
        self.access: RedisAccess = self._closed
        self.inspector: RedisInspector = self._closed
        self.wakeup: RedisWakeup = self._closed
        self._transport: Transport | None = None

    async def open(self, *, create: bool = True) -> None:
        if self._transport is not None:
            return
        _, state, facts = await self._prepare(create=create)
        alone = state.shards == 1
        self.capabilities = replace(
            self.capabilities, shards=state.shards, claims_ahead=alone, tells_calm=alone
        )
        transport = self._transport = Transport(self._address, self._deadline, self._clock_ms)
        transport.divide(state.shards)
        transport.watch(facts.memory)
        self.wakeup = RedisWakeup(self._address, transport)
        self.jobs = RedisJobs(transport, self.wakeup)
        self.schedules = RedisSchedules(transport)
        self.membership = RedisMembership(transport)
        self.settings = RedisSettings(transport)
        self.activity = RedisActivity(transport)
        self.access = RedisAccess(transport, CAPABILITIES.max_batch)
        self.inspector = RedisInspector(transport)

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        await self.wakeup.close()
        await transport.close()

    async def migrate(
        self, *, run: Sequence[str] = (), read: Sequence[str] = ()
    ) -> tuple[int, int]:
        await self.grant(run=run, read=read)
        before, state, _ = await self._prepare(create=True)
        return before, state.version

    async def grant(self, *, run: Sequence[str] = (), read: Sequence[str] = ()) -> None:
        if run or read:
            name = [*run, *read][0]
            raise InvalidOption(
                f"the rights of Redis users are not ours to give, so `{name}` gets none",
                hint=f"let an administrator say: ACL SETUSER {name} {key_pattern(self._address)} "
                "+@all -@admin -@dangerous +info",
                value=name,
            )

    async def check_up(self, *, lease_ms: int = DEFAULT_LEASE_MS) -> Checkup:
        return await check_up(self._address, self._deadline, lease_ms)

    async def _prepare(self, *, create: bool) -> tuple[int, installer.State, server.Facts]:
        return await installer.prepare(
            self._address, self._deadline, create=create, clock_ms=self._clock_ms
        )


class RedisJobs:
    """The verbs that move jobs."""

    def __init__(self, call: Call, wakeup: RedisWakeup) -> None:
        self._call = call
        self._wakeup = wakeup

    async def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        if not jobs:
            return []
        news = self._wakeup.word(jobs[0]) if len(jobs) == 1 else ()
        try:
            return await submit(self._call, _bounded(jobs), news)
        except inputs.Unkept as error:
            raise inputs.refusal(error) from error

    async def claim(self, request: ClaimRequest) -> Claimed:
        answer = await claim(self._call, request, self._wakeup)
        if self._call.replicated and any(one.job.delivery is _ONCE for one in answer.claims):
            # A failover that forgot the claim would hand out the job again.
            await self._call.run("confirm", ())
        return answer

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


class RedisSchedules:
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
        return await fire(self._call, _bounded(firings)) if firings else []

    async def trigger(
        self, schedule_id: str, run: Run, *, by: str, reason: str, tenant: str | None = None
    ) -> Triggered:
        check_note(by, reason)
        return await trigger(self._call, schedule_id, run, tenant)

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


class RedisMembership:
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


class RedisSettings:
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


class RedisActivity:
    """What workers did and what waits, as a whole."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def tally(self, worker: str, number: int, tally: Tally) -> bool:
        return await activity.tally(self._call, worker, number, tally)

    async def activity(self, minutes: int) -> list[Minute]:
        return await activity.activity(self._call, checked_minutes(minutes))

    async def standing(self) -> Standing:
        return await activity.standing(self._call)


class RedisInspector:
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
