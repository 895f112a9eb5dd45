"""Put the schedules that a program declares into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamplighter.fleet import Fleet
from lamplighter.port.schedules import NewSchedule
from lamplighter.port.store import Engine
from lamplighter.service import Service

POLL = 1.0


class Declarer(Service):
    """Put them once, however long the store lets us wait for that, and again into an empty store.

    Putting what is there already changes nothing, so every worker of a program may do it. A store
    that has forgotten its workers may have been made anew: what it lacks is put again. What it
    knows stays as it is, for another version of the program may have declared it since.
    """

    name = "declare"
    patience = 120.0

    def __init__(
        self,
        engine: Engine,
        declared: Callable[[], Sequence[NewSchedule]],
        *,
        by: str,
        fleet: Fleet | None = None,
    ) -> None:
        super().__init__()
        self._engine = engine
        self._declared = declared
        self._left = list(declared())
        self._by = by
        self._fleet = fleet or Fleet()
        self._forgotten = self._fleet.forgotten

    async def step(self) -> float:
        """Put a batch, if there is one; afterwards, poll whether the store has forgotten it."""
        forgotten = self._fleet.forgotten
        if forgotten != self._forgotten:
            self._left = await self._missing()
            self._forgotten = forgotten
        size = self._engine.capabilities.max_batch
        batch, rest = self._left[:size], self._left[size:]
        if batch:
            await self._engine.schedules.put_schedules(batch, by=self._by)
        self._left = rest
        return 0.0 if rest else POLL

    async def _missing(self) -> list[NewSchedule]:
        known = self._engine.schedules
        return [
            new
            for new in self._declared()
            if await known.schedule(new.id, tenant=new.tenant) is None
        ]
