"""Plan schedules anew when the rules of time zones have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lamplighter import runtime
from lamplighter.coordinator.plan import replanned
from lamplighter.model.errors import StoreError
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.schedule import tzdata_version
from lamplighter.observability import events
from lamplighter.port import specs
from lamplighter.port.schedules import (
    FireAnswer,
    Fired,
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
    does it at a time, to spare the store; two that believe they lead do no harm.
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
        if not await self._engine.membership.lead(ROLE, self._holder, term):
            return INTERVAL
        page = await self._engine.schedules.schedules(
            ScheduleFilter(zones_not=self._version), limit=self._batch, cursor=self._cursor
        )
        older = [one for one in page.schedules if _is_older(one.zones, self._version)]
        firings = [made for one in older if (made := self._replanned(one)) is not None]
        if firings:
            done = sum(one.answer is FireAnswer.DONE for one in await self._fire(firings))
            events.emit(events.SCHEDULES_REPLANNED, count=done, zones=self._version)
        self._cursor = page.cursor
        return 0.0 if page.cursor is not None else INTERVAL

    def _replanned(self, record: ScheduleRecord) -> Firing | None:
        try:
            made = replanned(record, specs.from_text(record.spec, record.id), self._version)
        except Exception as error:  # noqa: BLE001 - one schedule must not stop the others
            self._complain(record.id, error)
            return None
        # A backfill is to go on when it was to: what is looked at too early does no harm.
        return made if record.backfill is None else replace(made, due_ms=record.due_ms)

    async def _fire(self, firings: Sequence[Firing]) -> list[Fired]:
        try:
            return await self._engine.schedules.fire(firings)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - find the plan that cannot be written, keep the others
            answers: list[Fired] = []
            for firing in firings:
                try:
                    answers += await self._engine.schedules.fire([firing])
                except StoreError:
                    raise
                except Exception as error:  # noqa: BLE001
                    self._complain(firing.id, error)
            return answers

    def _complain(self, schedule: str, error: Exception) -> None:
        events.emit(
            events.SERVICE_ERROR, service=self.name, error=error, expected=False, schedule=schedule
        )


def _is_older(zones: str, ours: str) -> bool:
    """Compare versions like 2026f: a year, then letters."""
    return zones < ours
