"""The service inside another application, which mounts it below a path of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from lamplighter.app import App
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server.application import application
from lamplighter.server.auth import ANYBODY, Headers, Principal
from lamplighter.server.door import Door
from lamplighter.server.errors import Forbidden, MissingToken
from lamplighter.server.service import HttpService

Ask = Callable[[HTTPConnection], Awaitable[Principal | None]]
"""Says on behalf of the application who is asking; None: nobody it knows."""

_HARMLESS = frozenset({"GET", "HEAD"})
_OWN_PAGES = frozenset({"none", "same-origin"})

_answering: ContextVar[Scope] = ContextVar("answering")
"""The request that is being answered: of it, a door gets only the headers."""


def mountable(
    app: App,
    *,
    keys: Sequence[str] = (),
    door: Ask | None = None,
    open_to_everybody: bool = False,
) -> Mountable:
    """Make the service of a program ready to be mounted.

    Somebody has to say who may call it: ``keys`` asks for one of these bearer keys, or for a token
    of the store; ``door`` is asked about each request, and gives a principal. Only with
    ``open_to_everybody`` may whoever reaches the application do everything.
    """
    chosen = [bool(keys), door is not None, open_to_everybody]
    if sum(chosen) != 1:
        raise InvalidOption(
            "nobody says who may call the mounted service"
            if not any(chosen)
            else "several arguments say who may call the mounted service",
            hint="give one of `keys=[…]`, `door=who_is_asking` and `open_to_everybody=True`",
            value=sum(chosen),
        )
    service = HttpService(app, keys)
    if door is not None:
        service.door = HostDoor(door)
    elif open_to_everybody:
        service.door = HostDoor(_everybody)
    return Mountable(service)


class Mountable:
    """An ASGI application that works below any path."""

    def __init__(self, service: HttpService) -> None:
        self.service = service
        self._application = application(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        token = _answering.set(scope)
        try:
            await self._application(scope, receive, send)
        finally:
            _answering.reset(token)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the store now and close it at the end: for the lifespan of the application."""
        await self.service.open()
        try:
            yield
        finally:
            await self.service.close()


class HostDoor(Door):
    """Lets in whom the application knows."""

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self.asks = True
        self._ask = ask

    async def principal(
        self, headers: Headers, *, anybody: bool = False, changes: bool = False
    ) -> Principal:
        """Ask the application who it is."""
        if anybody:
            return ANYBODY
        asking = HTTPConnection(_answering.get())
        _refuse_foreign_pages(asking)
        found = await self._ask(asking)
        if found is None:
            raise MissingToken(
                "the application does not know who is asking",
                hint="log in to it first",
            )
        return found


def _refuse_foreign_pages(asking: HTTPConnection) -> None:
    """Refuse changes that a page of another site has sent: a browser adds our cookies to them."""
    if asking.scope["method"] in _HARMLESS:
        return
    site, origin = asking.headers.get("sec-fetch-site"), asking.headers.get("origin")
    if site is None and origin is not None:
        own = origin.partition("://")[2] == asking.headers.get("host", "")
    else:
        own = site is None or site in _OWN_PAGES
    if not own:
        raise Forbidden(
            f"the request comes from a page of {shown(origin or site)}",
            hint="send it from a page of this application, or from a program",
            value=origin,
        )


async def _everybody(_: HTTPConnection) -> Principal:
    return Principal(name="everybody")
