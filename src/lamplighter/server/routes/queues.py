"""Queues: how much waits in them, and for how long."""

from __future__ import annotations

from lamplighter.server import shapes
from lamplighter.server.auth import Scope
from lamplighter.server.route import Answer, Nothing, Reply, Request, route


@route(
    "GET",
    "/v1/queues",
    scope=Scope.OPERATOR,
    summary="List the queues.",
    answers=[
        Answer(
            status=200,
            kind=shapes.Queues,
            text="All queues by name.",
            example={
                "queues": [
                    {
                        "name": "payments",
                        "ready": 12,
                        "scheduled": 3,
                        "running": 4,
                        "oldest_due_seconds": 0.8,
                        "held": False,
                    }
                ]
            },
        )
    ],
)
async def list_queues(request: Request[Nothing, None]) -> Reply:
    """Read the queues."""
    inspector = await request.service.inspector()
    found = await request.service.client.repeatable(inspector.queues)
    return Reply(200, shapes.Queues(queues=list(map(shapes.queue, found))))
