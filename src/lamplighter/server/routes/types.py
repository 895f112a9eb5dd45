"""Job types: what can be submitted, and with which arguments."""

from __future__ import annotations

from lamplighter.server import shapes
from lamplighter.server.auth import Scope
from lamplighter.server.route import Answer, Nothing, Reply, Request, route


@route(
    "GET",
    "/v1/types",
    scope=Scope.JOBS_READ,
    summary="List the job types that workers have published, with the schema of their arguments.",
    answers=[
        Answer(
            status=200,
            kind=shapes.JobTypes,
            text="One entry per version of a type.",
            example={
                "types": [
                    {
                        "name": "charge",
                        "queue": "payments",
                        "hash": "5d41402abc4b2a76",
                        "live_workers": 1,
                        "schema": {
                            "type": "object",
                            "properties": {
                                "order_id": {"type": "string"},
                                "cents": {"type": "integer"},
                            },
                            "required": ["order_id", "cents"],
                        },
                        "held": False,
                    }
                ]
            },
        )
    ],
)
async def list_types(request: Request[Nothing, None]) -> Reply:
    """Read the types."""
    inspector = await request.service.inspector()
    found = await request.service.client.repeatable(inspector.types)
    return Reply(200, shapes.JobTypes(types=list(map(shapes.job_type, found))))
