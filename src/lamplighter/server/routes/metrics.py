"""Metrics, for whoever collects them."""

from __future__ import annotations

from lamplighter.observability.exposition import CONTENT_TYPE
from lamplighter.server.auth import Scope
from lamplighter.server.route import Answer, Nothing, Reply, Request, route


@route(
    "GET",
    "/metrics",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="Give the metrics of this process and of the store, in the format of Prometheus.",
    answers=[
        Answer(
            status=200,
            kind=str,
            text="All metrics; docs/reference/metrics.md explains them.",
            example='lamplighter_queue_ready_jobs{queue="payments"} 12\n',
            media=CONTENT_TYPE,
        )
    ],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Write what was measured, and what is in the store."""
    service = request.service
    engine = await service.client.engine()
    text = await service.client.repeatable(lambda: service.measures.text(engine))
    return Reply(200, text.encode(), media=CONTENT_TYPE)
