"""Who is asking, as the service sees them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from lamplighter.server.auth import Principal, Scope
from lamplighter.server.marks import instant
from lamplighter.server.route import Answer, Nothing, Reply, Request, route
from lamplighter.server.service import HttpService


class SessionShape(msgspec.Struct, kw_only=True, frozen=True):
    """The session of a browser."""

    csrf: str
    """Sent as the header `X-CSRF-Token` with each request of the session that changes something."""
    ends_at: datetime
    """When it ends, whatever is done in it."""
    idle_seconds: float
    """How long it lasts while nothing is done. Requests with the header `X-User-Active` count, and
    changes."""


class Me(msgspec.Struct, kw_only=True, frozen=True):
    """Whoever asks, and what they may do."""

    name: str
    scopes: list[Scope]
    """All that they have, with those that others include."""
    tenant: str | None
    """The only tenant whose jobs and schedules exist for them; null: all do."""
    session: SessionShape | msgspec.UnsetType = msgspec.UNSET
    """Only in a session: what the page has to know of it."""
    dev: bool | msgspec.UnsetType = msgspec.UNSET
    """Only under `lamplighter dev`: there is a program to look at, at `/v1/dev`."""


@route(
    "GET",
    "/v1/me",
    scope=None,
    known=True,
    summary="Say who is asking, and what they may do.",
    answers=[
        Answer(
            status=200,
            kind=Me,
            text="Whoever sent this request.",
            example={
                "name": "shop/3f9c2a71b0de",
                "scopes": ["jobs:read", "jobs:write"],
                "tenant": "acme",
            },
        )
    ],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Say who is asking."""
    return Reply(200, me_of(request.principal, request.service))


def me_of(who: Principal, service: HttpService) -> Me:
    """Return who somebody is, and what their session needs."""
    sessions = service.sessions
    session: SessionShape | msgspec.UnsetType = msgspec.UNSET
    if sessions is not None and who.session is not None:
        session = SessionShape(
            csrf=sessions.csrf(who.session),
            ends_at=instant(who.session.ends * 1000),
            idle_seconds=sessions.idle,
        )
    return Me(
        name=who.name,
        scopes=sorted(who.scopes),
        tenant=who.tenant,
        session=session,
        dev=True if service.in_development else msgspec.UNSET,
    )
