"""What one tenant may have in the store, as far as tokens of its own bring it there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import pairwise

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.config import Settings
from lamplighter.model.counts import counted
from lamplighter.model.names import shown
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule, ScheduleFilter
from lamplighter.schedules import upcoming
from lamplighter.server.auth import Principal
from lamplighter.server.errors import TenantFull, TooFrequent
from lamplighter.server.remembered import Remembered

FRESH = 1.0
"""Seconds for which a count of the store is believed, with what was let in since added to it."""
FRESH_SCHEDULES = 10.0
"""The same for schedules, which are counted one by one."""
LOOKED_AT = 60
"""Occurrences to come whose distances are looked at."""

_PAGE = 500


@dataclass(slots=True)
class Known:
    """What a tenant had when somebody looked, and what was let in since."""

    count: int = 0
    read_at: float = float("-inf")
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Ledger:
    """How much each tenant has, read now and then."""

    def __init__(self, read: Callable[[str], Awaitable[int]], fresh: float) -> None:
        self._read = read
        self._fresh = fresh
        self._known = Remembered(Known)

    async def take(self, tenant: str, count: int, most: int) -> int | None:
        """Let so many more in; if that is too many, let in none and give what there is."""
        known = await self._look(tenant)
        if known.count + count > most:
            return known.count
        known.count += count
        return None

    async def _look(self, tenant: str) -> Known:
        known = self._known[tenant]
        async with known.looking:
            now = runtime.monotonic()
            if now - known.read_at >= self._fresh:
                known.count, known.read_at = await self._read(tenant), now
        return known


class Quotas:
    """The limits of this process. Callers that are not bound to a tenant have none."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._most_waiting = settings.http_tenant_waiting
        self._most_schedules = settings.http_tenant_schedules
        self._interval = settings.http_schedule_interval
        self._waiting = Ledger(self._count_waiting, FRESH)
        self._schedules = Ledger(self._count_schedules, FRESH_SCHEDULES)

    async def admit_jobs(self, principal: Principal, count: int) -> None:
        """Let so many jobs in, or refuse them all."""
        tenant, most = principal.tenant, self._most_waiting
        if tenant is None or not most:
            return
        there = await self._waiting.take(tenant, count, most)
        if there is not None:
            raise TenantFull(
                f"the tenant {shown(tenant)} has {counted(there, 'job')} waiting, and may "
                f"have {most:,}: {counted(count, 'more is', 'more are')} too many",
                hint="submit them when some have run; the setting `http_tenant_waiting` has the "
                "limit",
                value=count,
                headers={"Retry-After": "5"},
            )

    async def admit_schedule(self, principal: Principal, new: NewSchedule) -> None:
        """Let a schedule in, or refuse it; one that is there may always be changed."""
        tenant, most = principal.tenant, self._most_schedules
        await asyncio.to_thread(self.check_interval, principal, new)
        if tenant is None or not most or await self._is_there(new):
            return
        there = await self._schedules.take(tenant, 1, most)
        if there is not None:
            raise TenantFull(
                f"the tenant {shown(tenant)} has {counted(there, 'schedule')}, and may have "
                f"{most:,}",
                hint="delete those that are not needed any more; the setting "
                "`http_tenant_schedules` has the limit",
                value=new.id,
                headers={"Retry-After": f"{FRESH_SCHEDULES:.0f}"},
            )

    def check_interval(self, principal: Principal, new: NewSchedule) -> None:
        """Refuse a schedule that fires too often."""
        tenant = principal.tenant
        if tenant is None or not self._interval:
            return
        times = [each.utc for each in upcoming(specs.from_text(new.spec, new.id), LOOKED_AT)]
        gaps = (later - earlier for earlier, later in pairwise(times))
        shortest = min(gaps, default=timedelta.max).total_seconds()
        if shortest < self._interval:
            raise TooFrequent(
                f"the schedule {shown(new.id)} would fire again after {shortest:g} s; schedules of "
                f"the tenant {shown(tenant)} may do so after {self._interval:g} s at the earliest",
                hint="let it fire more rarely; the setting `http_schedule_interval` has the limit",
                value=shortest,
            )

    async def _count_waiting(self, tenant: str) -> int:
        inspector = (await self._client.engine()).inspector
        found = await self._client.repeatable(lambda: inspector.tenant(tenant))
        waiting = 0 if found is None else found.waiting
        most = self._most_waiting
        if waiting >= most:
            return waiting
        # A hold takes a job out of the line and not out of the store.
        held = await self._client.repeatable(lambda: inspector.held(tenant, most=most))
        return waiting + held

    async def _is_there(self, new: NewSchedule) -> bool:
        """Tell whether its tenant has a schedule of this id."""
        reads = (await self._client.engine()).schedules
        found = await self._client.repeatable(lambda: reads.schedule(new.id, tenant=new.tenant))
        return found is not None

    async def _count_schedules(self, tenant: str) -> int:
        """Count to the limit."""
        reads = (await self._client.engine()).schedules
        which, count = ScheduleFilter(tenants=(tenant,)), 0
        cursor: str | None = None
        while True:
            read = partial(reads.schedules, which, limit=_PAGE, cursor=cursor)
            page = await self._client.repeatable(read)
            count, cursor = count + len(page.schedules), page.cursor
            if cursor is None or count >= self._most_schedules:
                return count
