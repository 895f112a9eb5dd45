"""What happened, minute by minute."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lamplighter.model.activity import MOST_MINUTES
from lamplighter.server import overview
from lamplighter.server.auth import Scope
from lamplighter.server.errors import InvalidQuery
from lamplighter.server.overview import Stats
from lamplighter.server.route import Answer, Reply, Request, route
from lamplighter.server.routes import examples


class StatsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How far to look back."""

    minutes: Annotated[int, msgspec.Meta(ge=1, le=MOST_MINUTES)] = 60
    """Minutes, the present one included; a day is kept."""


@route(
    "GET",
    "/v1/stats",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="Say what happened, minute by minute, and how late jobs began.",
    query=StatsQuery,
    answers=[
        Answer(
            status=200,
            kind=Stats,
            text="The last minutes, oldest first; the last one is not over.",
            example={
                "minutes": [
                    {
                        "at": "2030-01-31T12:00:00Z",
                        **examples.COUNTS,
                        "lag": examples.LAG,
                    }
                ]
            },
        )
    ],
    errors=[InvalidQuery],
)
async def show(request: Request[StatsQuery, None]) -> Reply:
    """Read the minutes."""
    client, minutes = request.service.client, request.query.minutes
    engine = await client.engine()
    found = await client.repeatable(lambda: engine.activity.activity(minutes))
    return Reply(200, overview.stats(found))
