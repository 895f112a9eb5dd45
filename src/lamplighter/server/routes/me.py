"""Who is asking, as the service sees them."""

from __future__ import annotations

import msgspec

from lamplighter.server.auth import Scope
from lamplighter.server.route import Answer, Nothing, Reply, Request, route


class Me(msgspec.Struct, kw_only=True, frozen=True):
    """Whoever asks, and what they may do."""

    name: str
    scopes: list[Scope]
    """All that they have, with those that others include."""
    tenant: str | None
    """The only tenant whose jobs and schedules exist for them; null: all do."""


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
    who = request.principal
    return Reply(200, Me(name=who.name, scopes=sorted(who.scopes), tenant=who.tenant))
