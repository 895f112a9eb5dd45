"""Health: for whoever starts, stops and balances services."""

from __future__ import annotations

import asyncio
import logging

from lamplighter.model.errors import LamplighterError
from lamplighter.server import shapes
from lamplighter.server.errors import NotReady
from lamplighter.server.route import Answer, Nothing, Reply, Request, route

log = logging.getLogger("lamplighter.server")

_PATIENCE = 2.0
"""Seconds that a store in health needs at most for the simplest of reads."""


@route(
    "GET",
    "/healthz",
    scope=None,
    summary="Say whether the service answers at all.",
    answers=[
        Answer(status=200, kind=shapes.Health, text="It does.", example={"status": "ok"}),
    ],
)
async def alive(_: Request[Nothing, None]) -> Reply:
    """Answer."""
    return Reply(200, shapes.Health(status="ok"))


@route(
    "GET",
    "/readyz",
    scope=None,
    summary="Say whether the service can reach its store, so that requests make sense.",
    answers=[
        Answer(status=200, kind=shapes.Health, text="It can.", example={"status": "ok"}),
    ],
    errors=[NotReady],
)
async def ready(request: Request[Nothing, None]) -> Reply:
    """Ask the store."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await request.service.probe()
    except (LamplighterError, TimeoutError) as error:
        log.warning("not ready: %s", str(error) or f"no answer within {_PATIENCE:g} s")
        raise NotReady(
            "the store does not answer at present",
            hint="send requests to another service; this one's log says more",
            headers={"Retry-After": "1"},
        ) from error
    return Reply(200, shapes.Health(status="ok"))
