"""The ASGI application: every declared route, and nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lamplighter import runtime
from lamplighter.model.errors import LamplighterError, StoreError
from lamplighter.model.names import shown
from lamplighter.server import errors, gate, openapi, outgoing, problem
from lamplighter.server.auth import Principal, check_scope, check_whole
from lamplighter.server.deadlines import Deadlines
from lamplighter.server.measuring import NO_ROUTE
from lamplighter.server.paths import Place
from lamplighter.server.reading import (
    BodyReader,
    QueryReader,
    read_key,
    refuse_key,
    refuse_preconditions,
)
from lamplighter.server.route import JSON, Reply, Request, Route, Stream, Table
from lamplighter.server.routes import TABLE
from lamplighter.server.service import HttpService
from lamplighter.server.sessions import Session
from lamplighter.server.streaming import Streamed
from lamplighter.server.written import Written

log = logging.getLogger("lamplighter.server")

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_encoder = msgspec.json.Encoder()
_UNLIMITED = frozenset({"/healthz", "/readyz"})
"""Whoever watches over services asks these, often for many of them from one address."""


class Application(Starlette):
    """Leads to paths without parameters at once: the router asks one path after the other."""

    exact: Mapping[str, Endpoint]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is mounted below some path goes the long way."""
        if scope["type"] == "http" and not scope.get("root_path") and not self.user_middleware:
            endpoint = self.exact.get(scope["path"])
            if endpoint is not None and b"%" not in (scope.get("raw_path") or b""):
                scope["path_params"] = {}
                await endpoint(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def application(service: HttpService, table: Table = TABLE) -> Application:
    """Make the application that serves these routes, with the store open while it runs."""
    service.description = openapi.document(table)
    service.measures.expect(table)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        await service.open()
        try:
            yield
        finally:
            await service.close()

    async def nowhere(request: HttpRequest, _: Exception) -> Response:
        response = _nowhere(request.url.path)
        service.measures.answered("other", NO_ROUTE, response.status_code, 0.0)
        return response

    endpoints = {path: Endpoint(service, methods) for path, methods in table.paths.items()}
    made = Application(
        routes=[Place(path, endpoint, methods=None) for path, endpoint in endpoints.items()],
        exception_handlers={HTTPException: nowhere},
        lifespan=lifespan,
    )
    # A redirect would be an answer that no route declares.
    made.router.redirect_slashes = False
    made.exact = {path: each for path, each in endpoints.items() if "{" not in path}
    return made


def _nowhere(path: str) -> Response:
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
        self._deadlines = Deadlines(service.settings.http_timeout)
        self._origins = outgoing.origins_of(service.settings)
        self._servers = {method: Server(service, route) for method, route in methods.items()}
        self._path = next(iter(methods.values())).path
        if "GET" in self._servers:
            # Whatever sends the answer leaves out the body.
            self._servers["HEAD"] = self._servers["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] == "OPTIONS" and self._origins:
            found = outgoing.preflight(scope, self._origins, sorted(self._servers))
            if found is not None:
                await found(scope, receive, send)
                return
        began = runtime.monotonic()
        try:
            with self._deadlines():
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
        method = scope["method"]
        self._service.measures.answered(
            method if method in self._servers else "other",
            self._path,
            response.status_code,
            runtime.monotonic() - began,
        )
        outgoing.add(response, scope, self._service.settings, self._origins)
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        try:
            reply = await self._server(scope["method"]).serve(scope, receive)
        except LamplighterError as error:
            if isinstance(error, StoreError):
                where = f"{scope['method']} {shown(scope['path'])}"
                where = f"{where} [{outgoing.request_id(scope)}]"
                log.warning("%s: %s (hint: %s)", where, error.cause, error.hint)
            return _refused(error)
        except Exception:
            log.exception(
                "%s %s [%s] failed",
                scope["method"],
                shown(scope["path"]),
                outgoing.request_id(scope),
            )
            return _refused(
                errors.Unexpected(
                    "something went wrong in the service",
                    hint="try again; if it stays, the service's log says more",
                )
            )
        return _answered(reply, scope)

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
        self._body = None
        if route.body is not None:
            self._body = BodyReader(route.body, Deadlines(service.settings.http_body_timeout))
        self._statuses = route.statuses
        self._name = route.name
        submits = route.body is not None and (route.keyed or route.body.many)
        self._changes = route.changes and not submits

    async def serve(self, scope: Scope, receive: Receive) -> Reply:
        """Check a request and answer it."""
        service, route = self._service, self._route
        gate.check_head(scope, service.settings)
        principal = await self._principal(scope)
        if route.asks:
            scope["lamplighter.rate"] = service.rates.take(principal.name)
        check_scope(principal, route.scope)
        if route.whole:
            check_whole(principal)
        if route.changes:
            refuse_preconditions(scope["headers"], matches=route.matches)
        if not route.keyed and route.changes:
            refuse_key(scope["headers"], many=route.body is not None and route.body.many)
        query = self._query.read(scope["query_string"])
        body = None
        if self._body is not None:
            body = await self._body.read(scope, receive, service.settings)
        work = self._served(
            Request(
                service=service,
                principal=principal,
                query=query,
                body=body,
                path=scope["path_params"],
                key=read_key(scope["headers"]) if route.keyed else None,
                action=self._name,
                scope=scope,
            )
        )
        # A change is to be noted when it is made, also if its request is given up meanwhile.
        reply = await (_to_its_end(work) if self._changes else work)
        if reply.status not in self._statuses:
            raise RuntimeError(f"{route.name} answered {reply.status}, which it does not declare")
        if principal.session is not None:
            self._renew(principal.session, reply, scope)
        return reply

    async def _principal(self, scope: Scope) -> Principal:
        """Say who is asking; those who do not say so, or wrongly, are limited by their address."""
        service, route = self._service, self._route
        limited = service.door.asks and route.path not in _UNLIMITED
        if limited and not route.asks:
            service.anonymous.take(_address(scope))
        try:
            return await service.door.principal(
                scope["headers"], anybody=not route.asks, changes=route.method != "GET"
            )
        except errors.HttpError as error:
            if limited and error.status == HTTPStatus.UNAUTHORIZED:
                service.anonymous.take(_address(scope))
            raise

    def _renew(self, session: Session, reply: Reply, scope: Scope) -> None:
        """Keep the session of a browser alive, whose user does something."""
        sessions, headers = self._service.sessions, scope["headers"]
        if sessions is None or "Set-Cookie" in reply.headers:
            return
        renewed = sessions.renewed(session, headers, changes=self._changes)
        if renewed is not None:
            cookie = sessions.cookie(renewed, headers, scope.get("root_path", ""))
            reply.headers = {**reply.headers, "Set-Cookie": cookie}

    async def _served(self, request: Request[Any, Any]) -> Reply:
        return await self._route.handler(request)


def _address(scope: Scope) -> str:
    """Return where a request comes from."""
    client = scope.get("client")
    return f"somebody at {client[0]}" if client else "somebody"


def _to_its_end(work: Coroutine[Any, Any, Reply]) -> Awaitable[Reply]:
    return asyncio.shield(runtime.spawn(work, name="change", on_crash=_known))


def _known(error: BaseException) -> None:
    """Leave it to whoever waits for the answer."""
    log.debug("a change was not made: %s", error)


def _answered(reply: Reply, scope: Scope) -> Response:
    headers = reply.headers
    if "Location" in headers and (prefix := scope.get("root_path")):
        # Paths are declared as if nothing stood before them.
        headers = {**headers, "Location": quote(prefix) + headers["Location"]}
    if reply.media == JSON and not isinstance(reply.body, bytes):
        return _response(reply.status, reply.body, headers, JSON)
    headers = {**_HEADERS, **headers}
    if isinstance(reply.body, Stream):
        return Streamed(reply.status, reply.body, headers=headers, media_type=reply.media)
    return Response(cast("bytes", reply.body), reply.status, headers, reply.media)


def _response(status: int, body: object, headers: Mapping[str, str], media: str) -> Response:
    return Written(status, _encoder.encode(body), {**_HEADERS, **headers}, media)


def _refused(error: LamplighterError) -> Response:
    described = problem.problem_of(error)
    headers = problem.headers_of(error)
    return _response(described.status, described, headers, problem.MEDIA_TYPE)
