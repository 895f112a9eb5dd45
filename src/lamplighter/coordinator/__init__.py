"""What keeps a store in order, on every node. Each part is one Service; any number may run."""

from __future__ import annotations

from lamplighter.config import Settings
from lamplighter.coordinator.prune import Pruner
from lamplighter.coordinator.rescue import Rescuer
from lamplighter.port.store import Engine
from lamplighter.service import Service

__all__ = ["Pruner", "Rescuer", "services"]


def services(engine: Engine, settings: Settings) -> list[Service]:
    """Give every service of the coordinator, not started yet."""
    return [Rescuer(engine, settings), Pruner(engine, settings)]
