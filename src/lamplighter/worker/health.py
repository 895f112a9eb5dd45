"""Looks at the loops of a worker, and tells when they are not well, or well again."""

from __future__ import annotations

from collections.abc import Callable

from lamplighter import runtime
from lamplighter.observability import events
from lamplighter.observability.health import Health
from lamplighter.service import Service

LOOK = 2.0


class HealthWatch(Service):
    """Tells each change of health once.

    One that comes late itself, because the machine slept or the process was stopped, says nothing
    about the others: they were stopped too.
    """

    name = "health"

    def __init__(self, worker: str, health: Callable[[], Health]) -> None:
        super().__init__()
        self._worker = worker
        self._health = health
        self._why: tuple[str, ...] = ()
        self._looked = runtime.monotonic()

    async def step(self) -> float:
        """Look once."""
        now = runtime.monotonic()
        came_late = now - self._looked > 2 * LOOK
        self._looked = now
        if not came_late:
            self._tell(self._health())
        return LOOK

    def _tell(self, health: Health) -> None:
        if health.why != self._why:
            self._why = health.why
            events.emit(events.HEALTH_CHANGED, worker=self._worker, **health.to_json())
