"""The jobs of schedules, checked against what workers say of their types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lamplighter.app import App
from lamplighter.cli.fitting import check_fit
from lamplighter.job import Call
from lamplighter.model.errors import UnknownType
from lamplighter.model.names import shown
from lamplighter.options import SubmitOptions


class Types:
    """What workers have ever published in this store; those that are gone may come back."""

    def __init__(self, schemas: Mapping[str, list[dict[str, Any]]], *, force: bool) -> None:
        self._schemas = schemas
        self._force = force

    @classmethod
    async def read(cls, app: App, *, force: bool) -> Types:
        """Ask the store; with ``force`` nothing is refused later."""
        engine = await app.engine()
        rows = await engine.inspector.types()
        rows.sort(key=lambda row: -row.live_workers)
        schemas: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            schemas.setdefault(row.name, []).append(json.loads(row.schema))
        return cls(schemas, force=force)

    def schema(self, name: str) -> dict[str, Any]:
        """Return what most workers say of the arguments of a type, or refuse an unknown one."""
        versions = self._schemas.get(name)
        if versions is not None:
            return versions[0]
        if self._force:
            return {}
        known = ", ".join(sorted(self._schemas)) or "none"
        raise UnknownType(
            f"no worker has ever told this store of the job type {shown(name)}",
            hint=f"known: {known}. Start a worker that knows it, or add --force to do it all the "
            "same",
            value=name,
        )

    async def call(
        self, app: App, name: str, arguments: Mapping[str, object], options: SubmitOptions
    ) -> Call[object]:
        """Make the job of a schedule, if its arguments fit one of the versions of its type."""
        self.schema(name)
        made = await app.call(name, arguments, **options)
        if not self._force:
            check_fit(name, arguments, self._schemas.get(name, []))
        return made
