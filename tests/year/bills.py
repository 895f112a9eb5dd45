"""The first of every month for every tenant: through a coordinator and a real store.

The store's clock stands still while anything is due, and then goes to the next due time that the
store tells. Jobs are claimed and settled as a worker does it, so that every run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lamplighter import App, runtime
from lamplighter.config import Settings
from lamplighter.connect import connect
from lamplighter.coordinator import Firer
from lamplighter.model.job import Claim
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Succeeded
from lamplighter.model.retry import Retry
from lamplighter.model.timetable import milliseconds
from lamplighter.port.schedules import NewSchedule, ScheduleFilter
from lamplighter.port.store import Engine
from lamplighter.port.values import ClaimRequest
from lamplighter.testing.clock import Clock, installed
from tests.year.ledger import Ledger
from tests.year.tenants import END, START, ZONES, Tenant, beginnings

CALENDAR = "0 0 1 * *"
TYPE, QUEUE, PREFIX = "bill", "billing", "bills/"
PAGE = 500
LEASE_MS = 60_000

_ONCE = Retry(max_attempts=1)


class Office:
    """A store, its coordinator and the worker that writes the bills."""

    def __init__(self, engine: Engine, clock: Clock, ledger: Ledger) -> None:
        self._engine = engine
        self._clock = clock
        self._ledger = ledger
        self._firer = Firer(engine, Settings())
        self._batch = min(1_000, engine.capabilities.max_batch)

    async def put(self, schedules: Sequence[NewSchedule]) -> None:
        size = self._engine.capabilities.max_batch
        for start in range(0, len(schedules), size):
            await self._engine.schedules.put_schedules(schedules[start : start + size], by="year")

    async def pass_the_year(self) -> None:
        """Fire and run what is due, let the time pass until the next is, and so on to the end."""
        end_ms = milliseconds(END)
        while True:
            found, poll_after_ms = await self._firer.fire_batch()
            if found or poll_after_ms == 0:
                continue
            if await self._run():
                continue
            if poll_after_ms is None or self._clock.now_ms() + poll_after_ms > end_ms:
                return
            self._clock.advance(poll_after_ms / 1000)

    async def _run(self) -> int:
        """Run one batch of jobs; gives how many there were."""
        wanted = ClaimRequest(
            nonce=runtime.nonce(),
            worker="w-1",
            queues=((QUEUE, self._batch),),
            types=(TYPE,),
            limit=self._batch,
            lease_ms=LEASE_MS,
        )
        claims = (await self._engine.jobs.claim(wanted)).claims
        for claim in claims:
            self._bill(claim)
        if claims:
            await self._engine.jobs.settle(
                [settle(claim, Succeeded(b"null"), retry=_ONCE) for claim in claims]
            )
        return len(claims)

    def _bill(self, claim: Claim) -> None:
        job, tenant = claim.job, Tenant(int(claim.job.tenant.rpartition("-")[2]))
        due_ms = milliseconds(datetime.fromisoformat(str(job.extras.metadata["scheduled_for"])))
        self._ledger.bill(tenant, due_ms)
        if job.schedule != PREFIX + tenant.name or job.created_at_ms != due_ms:
            self._ledger.fault(f"{tenant.name}: {job.schedule} made its job at {job.created_at_ms}")

    async def audit(self) -> None:
        """Ask the store itself what it has counted."""
        cursor, fired = None, 0
        while True:
            which = ScheduleFilter(prefix=PREFIX)
            page = await self._engine.schedules.schedules(which, limit=PAGE, cursor=cursor)
            fired += sum(one.fired for one in page.schedules)
            for one in page.schedules:
                if one.skipped or one.failures or one.hold is not None:
                    self._ledger.fault(f"the store says of {one.id}: {one}")
            cursor = page.cursor
            if cursor is None:
                break
        if fired != self._ledger.expected:
            self._ledger.fault(f"the store has counted {fired} of {self._ledger.expected}")


async def run(url: str, tenants: int) -> Ledger:
    """Let the year pass on an empty store."""
    people = [Tenant(number) for number in range(tenants)]
    ledger = Ledger(people, {name: beginnings(name, monthly=True) for name in ZONES})
    with installed(START) as clock:
        engine = connect(url, clock_ms=clock.now_ms)
        await engine.open()
        try:
            office = Office(engine, clock, ledger)
            await office.put(_made(people))
            await office.pass_the_year()
            await office.audit()
        finally:
            await engine.close()
    ledger.close()
    return ledger


def _made(tenants: Sequence[Tenant]) -> list[NewSchedule]:
    app = App()

    @app.job(name=TYPE, queue=QUEUE)
    async def bill(tenant: str) -> None: ...

    return [
        app.schedules.make(
            PREFIX + tenant.name,
            CALENDAR,
            bill.options(tenant=tenant.name).call(tenant.name),
            timezone=tenant.zone,
        )
        for tenant in tenants
    ]
