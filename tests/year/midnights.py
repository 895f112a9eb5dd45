"""Every midnight of the year for every tenant: through the planner, with a due queue in memory.

A store would need hours for it. What a coordinator does with each schedule is the same: read its
text, plan it for the instant at which it is due, and take the next due time from the plan.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

from lamplighter import App
from lamplighter.coordinator.plan import plan
from lamplighter.model.schedule import tzdata_version
from lamplighter.model.timetable import milliseconds
from lamplighter.port import specs
from lamplighter.port.schedules import DueSchedule, Firing, ScheduleRecord
from lamplighter.testing.clock import installed
from tests.year.ledger import SHOWN, Ledger
from tests.year.tenants import END, START, ZONES, Tenant, beginnings

CALENDAR = "0 0 * * *"


@dataclass(frozen=True, slots=True)
class Found:
    """What a part of the tenants got."""

    bills: int
    expected: int
    faults: Sequence[str]
    """Some of them."""


def run(tenants: int, *, jobs: int = 1) -> Found:
    """Let the year pass for so many tenants, divided among processes."""
    parts = [range(first, tenants, jobs) for first in range(jobs)]
    if jobs == 1:
        found = [part(parts[0])]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            found = list(pool.map(part, parts))
    return Found(
        sum(one.bills for one in found),
        sum(one.expected for one in found),
        [fault for one in found for fault in one.faults][:SHOWN],
    )


def part(numbers: range) -> Found:
    """Let the year pass for some tenants."""
    tenants = [Tenant(number) for number in numbers]
    ledger = Ledger(tenants, {name: beginnings(name) for name in ZONES})
    _pass(tenants, ledger)
    ledger.close()
    return Found(ledger.bills, ledger.expected, ledger.faults[:SHOWN])


def _pass(tenants: Sequence[Tenant], ledger: Ledger) -> None:
    """Go from one due time to the next until the year is over."""
    end_ms, zones = milliseconds(END), tzdata_version()
    records = {one.id: one for one in _put(tenants)}
    owners = {_name(tenant): tenant for tenant in tenants}
    queue = [(one.due_ms, one.id) for one in records.values() if one.due_ms is not None]
    heapq.heapify(queue)
    while queue and queue[0][0] <= end_ms:
        now_ms, name = heapq.heappop(queue)
        record = records[name]
        firing = plan(DueSchedule(record=record), specs.from_text(record.spec, name), now_ms, zones)
        _note(ledger, owners[name], firing, now_ms)
        records[name] = replace(
            record,
            cursor_ms=firing.next_cursor_ms,
            due_ms=firing.due_ms,
            fired=record.fired + len(firing.runs),
        )
        if firing.due_ms is not None:
            heapq.heappush(queue, (firing.due_ms, name))


def _note(ledger: Ledger, tenant: Tenant, firing: Firing, now_ms: int) -> None:
    if firing.skips or firing.hold is not None:
        ledger.fault(f"{tenant.name}: something was skipped: {firing}")
    if firing.due_ms is not None and firing.due_ms <= now_ms:
        ledger.fault(f"{tenant.name}: due again at once: {firing}")
    for run in firing.runs:
        ledger.bill(tenant, run.due_ms)


def _name(tenant: Tenant) -> str:
    return f"midnight/{tenant.name}"


def _put(tenants: Sequence[Tenant]) -> list[ScheduleRecord]:
    """Give the schedules as a store has them that got them at the start."""
    app, start_ms = App(), milliseconds(START)

    @app.job()
    async def bill(tenant: str) -> None: ...

    with installed(START):
        made = [
            app.schedules.make(
                _name(tenant),
                CALENDAR,
                bill.options(tenant=tenant.name).call(tenant.name),
                timezone=tenant.zone,
            )
            for tenant in tenants
        ]
    return [
        ScheduleRecord(
            id=new.id,
            spec=new.spec,
            tenant=new.tenant,
            type=new.type,
            version=1,
            cursor_ms=start_ms,
            due_ms=new.due_ms,
            created_at_ms=start_ms,
            changed_at_ms=start_ms,
            zones=new.zones,
        )
        for new in made
    ]
