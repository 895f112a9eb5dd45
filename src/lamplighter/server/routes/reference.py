"""The reference of this interface, as a page to read."""

from __future__ import annotations

from lamplighter.server import reference
from lamplighter.server.assets import ASK_AGAIN
from lamplighter.server.route import CSS, HTML, Nothing, Reply, Request, route
from lamplighter.server.routes.console import file_answers, sent


@route(
    "GET",
    "/v1/reference",
    scope=None,
    summary="Describe this interface as a page to read.",
    answers=file_answers(HTML, "The page.", "<!doctype html>"),
)
async def page(request: Request[Nothing, None]) -> Reply:
    """Return the page, made of the same document that programs get."""
    return sent(request, request.service.reference, ASK_AGAIN)


@route(
    "GET",
    "/v1/reference.css",
    scope=None,
    summary="Give the look of the reference.",
    answers=file_answers(CSS, "The style sheet.", "body {}"),
)
async def style(request: Request[Nothing, None]) -> Reply:
    """Return the style sheet."""
    return sent(request, reference.style(), ASK_AGAIN)
