"""The whole store at a glance."""

from __future__ import annotations

import asyncio

from lamplighter.server import overview
from lamplighter.server.auth import Scope
from lamplighter.server.overview import LAG_MINUTES, Overview
from lamplighter.server.route import Answer, Nothing, Reply, Request, route
from lamplighter.server.routes import examples


@route(
    "GET",
    "/v1/overview",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="Look at the whole store: what waits and runs, how late, how much is done.",
    answers=[
        Answer(
            status=200,
            kind=Overview,
            text="The store as it is now.",
            example={
                "at": "2030-01-31T12:00:00Z",
                "waiting": {"count": 10_000, "at_least": True},
                "due": {"count": 12, "at_least": False},
                "scheduled": {"count": 10_000, "at_least": True},
                "held": {"count": 0, "at_least": False},
                "running": {"count": 4, "at_least": False},
                "dead": {"count": 3, "at_least": False},
                "oldest": {"id": examples.ID, "queue": "payments", "due_seconds": 0.4},
                "workers": 2,
                "slots": 100,
                "last_minute": examples.COUNTS,
                "lag": examples.LAG,
                "fire_lag_seconds": 0.0,
            },
        )
    ],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Read what is there and what happened."""
    client = request.service.client
    engine = await client.engine()
    seen, minutes = await asyncio.gather(
        client.repeatable(lambda: overview.look(engine)),
        client.repeatable(lambda: engine.activity.activity(LAG_MINUTES + 1)),
    )
    return Reply(200, overview.overview(seen, minutes))
