"""Put the schedules that a program declares into the store."""

from __future__ import annotations

from collections.abc import Sequence

from lamplighter.port.schedules import NewSchedule
from lamplighter.port.store import Engine
from lamplighter.service import Service

DAY = 86_400.0


class Declarer(Service):
    """Put them once, however long the store lets us wait for that.

    Putting what is there already changes nothing, so every worker of a program may do it.
    """

    name = "declare"
    patience = 120.0

    def __init__(self, engine: Engine, declared: Sequence[NewSchedule], *, by: str) -> None:
        super().__init__()
        self._engine = engine
        self._left = list(declared)
        self._by = by

    async def step(self) -> float:
        """Put a batch; then there is nothing more to do."""
        size = self._engine.capabilities.max_batch
        batch, rest = self._left[:size], self._left[size:]
        if batch:
            await self._engine.schedules.put_schedules(batch, by=self._by)
        self._left = rest
        return 0.0 if rest else DAY
