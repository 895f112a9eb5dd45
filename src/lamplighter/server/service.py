"""What all requests share: the way to the store, the known types, the settings."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec

from lamplighter.app import App
from lamplighter.client import Client, unknown
from lamplighter.model import ids
from lamplighter.model.errors import InvalidName, UnknownJob, UnknownSchedule
from lamplighter.model.ids import check_id
from lamplighter.model.job import JobRecord
from lamplighter.model.names import DEFAULT_TENANT, shown
from lamplighter.observability.endpoint import Endpoint
from lamplighter.port.inspector import Inspector
from lamplighter.port.store import Engine
from lamplighter.schedules import Schedule, Schedules
from lamplighter.server import reference
from lamplighter.server.assets import Asset, asset
from lamplighter.server.auth import Principal, check_keys, check_secret
from lamplighter.server.catalog import Catalog
from lamplighter.server.cursors import Cursors
from lamplighter.server.door import Door
from lamplighter.server.events import Hub
from lamplighter.server.group_commit import GroupCommit
from lamplighter.server.jwts import Jwts
from lamplighter.server.login_codes import LoginCodes
from lamplighter.server.measuring import Measures
from lamplighter.server.outgoing import origins_of
from lamplighter.server.queue_names import QueueNames
from lamplighter.server.quotas import Quotas
from lamplighter.server.rate import Rates
from lamplighter.server.sessions import Sessions
from lamplighter.server.tokens import Tokens
from lamplighter.server.waits import Waits

_NOBODY = ids.compose(0, 0, 0)


class PageQuery(Protocol):
    """Which page of a listing is asked for."""

    limit: int
    cursor: str | None


class Page(Protocol):
    """A page as the store gives it."""

    @property
    def cursor(self) -> str | None:
        """Where to go on; None: that was all."""
        ...


PageT = TypeVar("PageT", bound=Page)


class HttpService:
    """One program's jobs, as a service. Makes nothing and opens nothing before it is asked."""

    def __init__(
        self,
        app: App,
        keys: Sequence[str] = (),
        *,
        tokens: bool = False,
        jwts: Jwts | None = None,
    ) -> None:
        check_keys(keys)
        check_secret(app.settings.http_secret)
        self.app = app
        self.settings = app.settings
        self.client = Client(app.settings)
        self.client.registry = app.registry
        self.group_commit = GroupCommit(self.client)
        self.schedules = Schedules(self.client)
        self.catalog = Catalog(self.client)
        self.queues = QueueNames(self.client, self.catalog)
        self.cursors = Cursors(app.settings.http_secret)
        # As soon as anything is asked for, the tokens in the store are good too.
        asks = bool(keys) or tokens or jwts is not None
        self.sessions = Sessions(self.client, app.settings) if asks else None
        self.codes = LoginCodes(self.client)
        self.door = Door(
            keys,
            tokens=Tokens(self.client) if asks else None,
            jwts=jwts,
            sessions=self.sessions,
            origins=origins_of(app.settings),
        )
        self.rates = Rates(app.settings.http_rate, app.settings.http_burst)
        self.quotas = Quotas(self.client, app.settings)
        self.events = Hub(app.settings, self.probe)
        self.waits = Waits(self.client, app.settings)
        self.measures = Measures(app.settings)
        self.in_development = False
        """Whether `lamplighter dev` serves it, which has routes of its own."""
        self._endpoint: Endpoint | None = None
        self.description: dict[str, Any] = {}
        """The interface as an OpenAPI document."""
        self.anonymous = Rates(
            app.settings.http_anonymous_rate,
            app.settings.http_anonymous_burst,
            setting="http_anonymous_rate",
        )

    @cached_property
    def document(self) -> Asset:
        """The same as it is sent, written once."""
        return asset(msgspec.json.encode(self.description), "application/json")

    @cached_property
    def reference(self) -> Asset:
        """The same as a page to read."""
        return reference.page(self.description)

    async def open(self) -> None:
        """Open the store, to learn now whether it can be reached."""
        self.client.connections.adopt(await self.app.engine())
        if self._endpoint is not None:
            await self._endpoint.start()

    async def close(self) -> None:
        """Write what waits to be written, and let go of the store."""
        self.events.close()
        if self._endpoint is not None:
            await self._endpoint.close()
        await self.group_commit.close()
        await self.client.connections.close()
        await self.app.close()

    def expose(self, listener: socket.socket | None) -> None:
        """Serve metrics on a port of their own too, where no token is asked for."""

        async def render() -> str:
            return await self.measures.text(await self.client.engine())

        self._endpoint = None if listener is None else Endpoint(listener, render)

    @property
    def metrics_port(self) -> int | None:
        """The port on which they are; None: there is none."""
        return None if self._endpoint is None else self._endpoint.port

    async def inspector(self) -> Inspector:
        """Return the reads of the store."""
        return (await self.client.engine()).inspector

    async def probe(self) -> None:
        """Ask the store for a job that cannot be."""
        await (await self.inspector()).job(_NOBODY)

    async def page(
        self,
        query: PageQuery,
        listing: str,
        read: Callable[[Engine, int, str | None], Awaitable[PageT]],
    ) -> tuple[PageT, str | None]:
        """Read a page, of so many at most and from this place, and write the cursor of the next.

        ``listing`` names what is listed: the cursor is good for nothing else.
        """
        place = self.cursors.read(query.cursor, listing)
        limit = min(query.limit, self.settings.http_page)
        engine = await self.client.engine()
        page = await self.client.repeatable(lambda: read(engine, limit, place))
        return page, self.cursors.written(page.cursor, listing)

    async def knows(self, job_type: str) -> bool:
        """Tell whether this program or a worker has said what the type is."""
        return job_type in self.client.registry or await self.catalog.get(job_type) is not None

    async def record(self, job_id: str, principal: Principal) -> JobRecord:
        """Read a job; what belongs to others does not exist."""
        record = await self.client.record(checked_id(job_id))
        if not principal.sees(record.job.tenant):
            raise unknown(record.job.id)
        return record

    async def schedule(
        self, schedule_id: str, principal: Principal, tenant: str | None
    ) -> Schedule:
        """Read a schedule of the caller's tenant; an operator names one, or means the default.

        What belongs to others does not exist.
        """
        owner = (principal.tenant or DEFAULT_TENANT) if tenant is None else tenant
        if not principal.sees(owner):
            raise unknown_schedule(schedule_id)
        try:
            return await self.schedules.get(schedule_id, tenant=owner)
        except (InvalidName, UnknownSchedule):
            raise unknown_schedule(schedule_id) from None


def unknown_schedule(schedule_id: str) -> UnknownSchedule:
    """Make the error for an id that leads nowhere."""
    return UnknownSchedule(
        f"there is no schedule {shown(schedule_id)}",
        hint="GET /v1/schedules lists all; in a path, write `/` inside an id as %2F; an operator "
        "names another tenant than `default` with ?tenant=",
        value=schedule_id,
    )


def checked_id(job_id: str) -> str:
    """Return an id in its canonical form; what can be no id is the id of no job."""
    try:
        return check_id(job_id)
    except InvalidName as error:
        raise UnknownJob(error.cause, hint=error.hint, value=job_id) from None
