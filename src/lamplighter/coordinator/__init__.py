"""What keeps a store in order, on every node. Each part is one Service; any number may run."""

from __future__ import annotations

from lamplighter.config import Settings
from lamplighter.coordinator.declare import Declarer
from lamplighter.coordinator.fire import Firer
from lamplighter.coordinator.prune import Pruner
from lamplighter.coordinator.rescue import Rescuer
from lamplighter.coordinator.versions import VersionWatch
from lamplighter.coordinator.zones import Zones
from lamplighter.fleet import Fleet
from lamplighter.port.store import Engine
from lamplighter.service import Service

__all__ = ["Declarer", "Firer", "Pruner", "Rescuer", "VersionWatch", "Zones", "services"]


def services(engine: Engine, settings: Settings, fleet: Fleet | None = None) -> list[Service]:
    """Return every service of the coordinator, not started yet.

    Of a large ``fleet``, each need not look at the store so often.
    """
    return [
        Rescuer(engine, settings, fleet),
        Firer(engine, settings, fleet),
        Zones(engine),
        Pruner(engine, settings),
        VersionWatch(engine, settings, fleet),
    ]
