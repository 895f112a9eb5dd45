"""Workers: who is alive."""

from __future__ import annotations

from lamplighter.server import shapes
from lamplighter.server.auth import Scope
from lamplighter.server.route import Answer, Nothing, Reply, Request, route


@route(
    "GET",
    "/v1/workers",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="List the workers and how they are.",
    answers=[
        Answer(
            status=200,
            kind=shapes.Workers,
            text="All workers, oldest first.",
            example={
                "workers": [
                    {
                        "id": "host-5c1d0a2e-4711-9f3b21aa",
                        "host": "host",
                        "pid": 4711,
                        "state": "alive",
                        "queues": ["payments"],
                        "types": ["charge"],
                        "slots": 50,
                        "running": 4,
                        "joined_at": "2030-01-31T11:00:00Z",
                        "beat_at": "2030-01-31T12:00:00Z",
                    }
                ]
            },
        )
    ],
)
async def list_workers(request: Request[Nothing, None]) -> Reply:
    """Read the workers."""
    inspector = await request.service.inspector()
    found = await request.service.client.repeatable(inspector.workers)
    return Reply(200, shapes.Workers(workers=list(map(shapes.worker, found))))
