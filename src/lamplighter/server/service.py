"""What all requests share: the way to the store, the known types, the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamplighter.app import App
from lamplighter.client import Client, unknown
from lamplighter.model.errors import InvalidName, UnknownJob, UnknownSchedule
from lamplighter.model.ids import check_id
from lamplighter.model.job import JobRecord
from lamplighter.model.names import shown
from lamplighter.port.store import Inspector
from lamplighter.schedules import Schedule, Schedules
from lamplighter.server.auth import Door, Principal
from lamplighter.server.catalog import Catalog
from lamplighter.server.cursors import Cursors


class HttpService:
    """One program's jobs, as a service. Makes nothing and opens nothing before it is asked."""

    def __init__(self, app: App, keys: Sequence[str] = ()) -> None:
        self.app = app
        self.settings = app.settings
        self.client = Client(app.settings)
        self.client.registry = app.registry
        self.schedules = Schedules(self.client)
        self.catalog = Catalog(self.client)
        self.cursors = Cursors(app.settings.http_secret)
        self.door = Door(keys)
        self.document: dict[str, Any] = {}
        """The OpenAPI document, for whoever asks for it."""

    async def open(self) -> None:
        """Open the store, to learn now whether it can be reached."""
        self.client.connections.adopt(await self.app.engine())

    async def close(self) -> None:
        """Let go of the store."""
        await self.client.connections.close()
        await self.app.close()

    async def inspector(self) -> Inspector:
        """Give the reads of the store."""
        return (await self.client.engine()).inspector

    async def record(self, job_id: str, principal: Principal) -> JobRecord:
        """Read a job; what belongs to others does not exist."""
        record = await self.client.record(checked_id(job_id))
        if not principal.sees(record.job.tenant):
            raise unknown(record.job.id)
        return record

    async def schedule(self, schedule_id: str, principal: Principal) -> Schedule:
        """Read a schedule; what belongs to others does not exist."""
        try:
            found = await self.schedules.get(schedule_id)
        except (InvalidName, UnknownSchedule):
            raise unknown_schedule(schedule_id) from None
        if not principal.sees(found.record.tenant):
            raise unknown_schedule(schedule_id)
        return found


def unknown_schedule(schedule_id: str) -> UnknownSchedule:
    """Make the error for an id that leads nowhere."""
    return UnknownSchedule(
        f"there is no schedule {shown(schedule_id)}",
        hint="GET /v1/schedules lists all; in a path, write `/` inside an id as %2F",
        value=schedule_id,
    )


def checked_id(job_id: str) -> str:
    """Give an id in its canonical form; what can be no id is the id of no job."""
    try:
        return check_id(job_id)
    except InvalidName as error:
        raise UnknownJob(error.cause, hint=error.hint, value=job_id) from None
