"""What one tenant may have in the store, as far as tokens of its own bring it there."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import pairwise

from lamplighter import runtime
from lamplighter.client import Client
from lamplighter.config import Settings
from lamplighter.model.names import shown
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule, ScheduleFilter
from lamplighter.schedules import upcoming
from lamplighter.server.auth import Principal
from lamplighter.server.errors import TenantFull, TooFrequent

FRESH = 1.0
"""Seconds for which a count of the store is believed, with what was let in since added to it."""
MOST = 10_000
"""Tenants that are remembered; whoever was not asked about for longest is forgotten first."""
LOOKED_AT = 60
"""Occurrences to come whose distances are looked at."""

_PAGE = 500


@dataclass(slots=True)
class Known:
    """What a tenant had when somebody looked, and what was let in since."""

    count: int = 0
    read_at: float = float("-inf")
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Quotas:
    """The limits of this process. Callers that are not bound to a tenant have none."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._waiting = settings.http_tenant_waiting
        self._schedules = settings.http_tenant_schedules
        self._interval = settings.http_schedule_interval
        self._known: dict[str, Known] = {}

    async def admit_jobs(self, principal: Principal, count: int) -> None:
        """Let so many jobs in, or refuse them all."""
        tenant = principal.tenant
        if tenant is None or not self._waiting:
            return
        known = await self._look(tenant)
        if known.count + count > self._waiting:
            raise TenantFull(
                f"the tenant {shown(tenant)} has {known.count} jobs waiting, and may have "
                f"{self._waiting}: {count} more are too many",
                hint="submit them when some have run; the setting `http_tenant_waiting` has the "
                "limit",
                value=count,
                headers={"Retry-After": "5"},
            )
        known.count += count

    async def admit_schedule(self, principal: Principal, new: NewSchedule) -> None:
        """Let a schedule in, or refuse it; one that is there may always be changed."""
        tenant = principal.tenant
        if tenant is None:
            return
        self.check_interval(principal, new)
        if self._schedules and not await self._is_there(new.id):
            count = await self._count_schedules(tenant)
            if count >= self._schedules:
                raise TenantFull(
                    f"the tenant {shown(tenant)} has {count} schedules, and may have "
                    f"{self._schedules}",
                    hint="delete those that are not needed any more; the setting "
                    "`http_tenant_schedules` has the limit",
                    value=new.id,
                    headers={"Retry-After": "60"},
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

    async def _look(self, tenant: str) -> Known:
        # The last to be used stands last.
        known = self._known[tenant] = self._known.pop(tenant, None) or Known()
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        async with known.looking:
            now = runtime.monotonic()
            if now - known.read_at >= FRESH:
                known.count, known.read_at = await self._count_waiting(tenant), now
        return known

    async def _count_waiting(self, tenant: str) -> int:
        inspector = (await self._client.engine()).inspector
        found = await self._client.repeatable(lambda: inspector.tenant(tenant))
        return 0 if found is None else found.waiting

    async def _is_there(self, schedule_id: str) -> bool:
        """Tell whether a schedule has this id; whose it is, the store looks at itself."""
        reads = (await self._client.engine()).schedules
        found = await self._client.repeatable(lambda: reads.schedule(schedule_id))
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
            if cursor is None or count >= self._schedules:
                return count
