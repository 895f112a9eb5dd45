"""Remove what is older than its retention."""

from __future__ import annotations

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.lifecycle import milliseconds
from lamplighter.observability import events
from lamplighter.port.store import Engine
from lamplighter.port.values import Retention
from lamplighter.service import Service

BATCH = 500
INTERVAL = 60.0
ROLE = "prune"


class Pruner(Service):
    """Delete terminal jobs past their retention, and old audit entries, a bounded batch at a time.

    One node does it at a time, to spare the store. Two that believe they lead do no harm.
    """

    name = "prune"
    patience = 300.0

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__()
        self._engine = engine
        self._holder = runtime.incarnation()
        self._retention = Retention(
            finished_ms=milliseconds(settings.keep_finished),
            finished_count=settings.keep_finished_count,
            dead_ms=milliseconds(settings.keep_dead),
            key_ms=milliseconds(settings.keep_keys),
        )
        self._keep_audit_ms = milliseconds(settings.keep_audit)

    async def step(self) -> float:
        """Remove one batch; the next follows at once while there is more."""
        term = milliseconds(2 * INTERVAL)
        if not await self._engine.membership.lead(ROLE, self._holder, term):
            return INTERVAL
        pruned = await self._engine.jobs.prune(self._retention, limit=BATCH)
        noted = await self._engine.access.prune_access(self._keep_audit_ms, limit=BATCH)
        others = pruned.others + noted
        if pruned.jobs or pruned.keys or others:
            events.emit(events.PRUNED, jobs=pruned.jobs, keys=pruned.keys, others=others)
        return 0.0 if pruned.more or noted >= BATCH else INTERVAL
