"""The ASGI application: every declared route, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lamplighter.model.errors import LamplighterError, StoreError
from lamplighter.model.names import shown
from lamplighter.server import errors, gate, openapi, problem
from lamplighter.server.auth import check_scope
from lamplighter.server.paths import Place
from lamplighter.server.reading import BodyReader, QueryReader, read_key
from lamplighter.server.route import JSON, Reply, Request, Route, Table
from lamplighter.server.routes import TABLE
from lamplighter.server.service import HttpService

log = logging.getLogger("lamplighter.server")

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_encoder = msgspec.json.Encoder()


def application(service: HttpService, table: Table = TABLE) -> Starlette:
    """Make the application that serves these routes, with the store open while it runs."""
    service.document = openapi.document(table)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await service.open()
        try:
            yield
        finally:
            await service.close()

    made = Starlette(
        routes=[
            Place(path, Endpoint(service, methods), methods=None)
            for path, methods in table.paths.items()
        ],
        exception_handlers={HTTPException: _nowhere},
        lifespan=lifespan,
    )
    # A redirect would be an answer that no route declares.
    made.router.redirect_slashes = False
    return made


async def _nowhere(request: HttpRequest, _: Exception) -> Response:
    path = request.url.path
    return _refused(
        errors.UnknownPath(
            f"there is nothing at {shown(path)}",
            hint="GET /v1/openapi.json lists all paths",
            value=path,
        )
    )


class Endpoint:
    """One path: finds the route for the method, checks the request, and has it served."""

    def __init__(self, service: HttpService, methods: Mapping[str, Route]) -> None:
        self._service = service
        self._servers = {method: Server(service, route) for method, route in methods.items()}
        if "GET" in self._servers:
            # Whatever sends the answer leaves out the body.
            self._servers["HEAD"] = self._servers["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            async with asyncio.timeout(self._service.settings.http_timeout):
                response = await self._answer(scope, receive)
        except TimeoutError:
            response = _refused(
                errors.Overdue(
                    f"there was no answer within {self._service.settings.http_timeout:g} s; what "
                    "was asked for may have happened",
                    hint="ask again; a submission with an Idempotency-Key is stored once",
                    headers={"Retry-After": "1"},
                )
            )
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        try:
            reply = await self._server(scope["method"]).serve(scope, receive)
        except LamplighterError as error:
            if isinstance(error, StoreError):
                log.warning("%s %s: %s", scope["method"], shown(scope["path"]), error.cause)
            return _refused(error)
        except Exception:
            log.exception("%s %s failed", scope["method"], shown(scope["path"]))
            return _refused(
                errors.Unexpected(
                    "something went wrong in the service",
                    hint="try again; if it stays, the service's log says more",
                )
            )
        return _response(reply.status, reply.body, reply.headers, JSON)

    def _server(self, method: str) -> Server:
        found = self._servers.get(method)
        if found is None:
            allowed = ", ".join(sorted(self._servers))
            raise errors.WrongMethod(
                f"{shown(method)} is not possible here",
                hint=f"use {allowed}",
                value=method,
                headers={"Allow": allowed},
            )
        return found


class Server:
    """One route: who asks comes first, then what they ask for, then the work."""

    def __init__(self, service: HttpService, route: Route) -> None:
        self._service = service
        self._route = route
        self._query = QueryReader(route.query)
        self._body = None if route.body is None else BodyReader(route.body)

    async def serve(self, scope: Scope, receive: Receive) -> Reply:
        """Check a request and answer it."""
        service, route = self._service, self._route
        gate.check_head(scope, service.settings)
        principal = service.door.principal(scope["headers"], anybody=route.scope is None)
        check_scope(principal, route.scope)
        query = self._query.read(scope["query_string"])
        body = None
        if self._body is not None:
            body = await self._body.read(scope, receive, service.settings)
        reply = await route.handler(
            Request(
                service=service,
                principal=principal,
                query=query,
                body=body,
                path=scope["path_params"],
                key=read_key(scope["headers"]) if route.keyed else None,
            )
        )
        if reply.status not in route.statuses:
            raise RuntimeError(f"{route.name} answered {reply.status}, which it does not declare")
        return reply


def _response(status: int, body: object, headers: Mapping[str, str], media: str) -> Response:
    return Response(
        _encoder.encode(body), status, headers={**_HEADERS, **headers}, media_type=media
    )


def _refused(error: LamplighterError) -> Response:
    described = problem.problem_of(error)
    headers = problem.headers_of(error)
    return _response(described.status, described, headers, problem.MEDIA_TYPE)
