"""The OpenAPI document: every route, as it was declared."""

from __future__ import annotations

from typing import Any

from lamplighter.server.route import Answer, Nothing, Reply, Request, route


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
        )
    ],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Give the document."""
    return Reply(200, request.service.document)
