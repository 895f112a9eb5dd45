"""Plan schedules anew when the rules of time zones have changed."""

from __future__ import annotations

from dataclasses import replace

from lamplighter import runtime
from lamplighter.coordinator.plan import replanned
from lamplighter.coordinator.writing import complain, write
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.schedule import tzdata_version
from lamplighter.observability import events
from lamplighter.port import specs
from lamplighter.port.schedules import (
    FireAnswer,
    Firing,
    ScheduleFilter,
    ScheduleRecord,
)
from lamplighter.port.store import Engine
from lamplighter.service import Service

BATCH = 100
INTERVAL = 600.0
ROLE = "zones"


class Zones(Service):
    """Set the next due time of schedules that were planned with older time zone data.

    Governments change clocks at short notice, and what was stored before then is an hour off. A
    node with newer data sets it right when it starts; one with older data leaves it alone. One node
    of a version does it at a time, to spare the store; two that believe they lead do no harm.
    """

    name = "zones"
    patience = 300.0

    def __init__(self, engine: Engine, version: str | None = None) -> None:
        super().__init__()
        self._engine = engine
        self._holder = runtime.incarnation()
        self._version = version or tzdata_version()
        self._cursor: str | None = None
        self._batch = min(BATCH, engine.capabilities.max_batch)

    async def step(self) -> float:
        """Plan one page anew; the next follows at once while there is more."""
        term = milliseconds(2 * INTERVAL)
        role = f"{ROLE}:{self._version}"
        if not await self._engine.membership.lead(role, self._holder, term):
            return INTERVAL
        page = await self._engine.schedules.schedules(
            ScheduleFilter(zones_not=self._version), limit=self._batch, cursor=self._cursor
        )
        older = [one for one in page.schedules if _is_older(one.zones, self._version)]
        firings = [made for one in older if (made := self._replanned(one)) is not None]
        if firings:
            written = await write(self._engine, firings, service=self.name)
            done = sum(answer.answer is FireAnswer.DONE for _, answer in written)
            events.emit(events.SCHEDULES_REPLANNED, count=done, zones=self._version)
        self._cursor = page.cursor
        return 0.0 if page.cursor is not None else INTERVAL

    def _replanned(self, record: ScheduleRecord) -> Firing | None:
        try:
            made = replanned(record, specs.from_text(record.spec, record.id), self._version)
        except Exception as error:  # noqa: BLE001 - one schedule must not stop the others
            complain(self.name, record.tenant, record.id, error)
            return None
        # A backfill is to go on when it was to: what is looked at too early does no harm.
        return made if record.backfill is None else replace(made, due_ms=record.due_ms)


def _is_older(zones: str, ours: str) -> bool:
    """Compare versions like 2026f: a year, then letters."""
    return zones < ours
