"""The OpenAPI document: every route, as it was declared."""

from __future__ import annotations

from typing import Any

from lamplighter.server.assets import ASK_AGAIN
from lamplighter.server.route import Answer, Nothing, Reply, Request, route
from lamplighter.server.routes.console import sent


@route(
    "GET",
    "/v1/openapi.json",
    scope=None,
    summary="Describe this interface as an OpenAPI 3.1 document.",
    answers=[
        Answer(
            status=200,
            kind=dict[str, Any],
            text="The document.",
            example={"openapi": "3.1.0"},
            headers={"ETag": "Tells this document from others, for `If-None-Match`."},
        ),
        Answer(
            status=304, kind=str, media=None, text="It is what `If-None-Match` names.", example=""
        ),
    ],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Return the document, which was written once."""
    return sent(request, request.service.document, ASK_AGAIN)
