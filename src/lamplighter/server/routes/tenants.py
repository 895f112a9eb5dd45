"""Tenants: who shares the workers, and in which proportion."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lamplighter.model.errors import InvalidName, InvalidOption
from lamplighter.model.names import check_name
from lamplighter.model.stride import DEFAULT_WEIGHT, MAX_WEIGHT, MIN_WEIGHT
from lamplighter.port.access import About
from lamplighter.port.values import TenantInfo, TenantSettings
from lamplighter.server import auditing, shapes
from lamplighter.server.auth import Scope
from lamplighter.server.errors import InvalidQuery, UnknownName
from lamplighter.server.route import Answer, Body, Nothing, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.notes import ReasonQuery, reason_of
from lamplighter.server.routes.queues import unknown_name, wake
from lamplighter.server.service import HttpService

_TENANT = Answer(status=200, kind=shapes.Tenant, text="The tenant.", example=examples.TENANT)


@route(
    "GET",
    "/v1/tenants",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="List the tenants that have settings, waiting or running jobs; at most 1,000.",
    answers=[
        Answer(
            status=200,
            kind=shapes.Tenants,
            text="The tenants by name.",
            example={"tenants": [examples.TENANT]},
        )
    ],
)
async def list_tenants(request: Request[Nothing, None]) -> Reply:
    """Read the tenants."""
    found = await _tenants(request.service)
    tenants = [shapes.tenant(each, request.principal) for each in found]
    return Reply(200, shapes.Tenants(tenants=tenants))


@route(
    "GET",
    "/v1/tenants/{name}",
    scope=Scope.OPERATOR_READ,
    summary="Look at a tenant.",
    answers=[_TENANT],
    errors=[UnknownName],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Read one of the tenants."""
    name = request.path["name"]
    found = await _tenant(request.service, name) if request.principal.sees(name) else None
    if found is None:
        raise unknown_name("tenant", name)
    return Reply(200, shapes.tenant(found, request.principal))


class TenantChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is set on a tenant; what is left out stays."""

    weight: Annotated[int, msgspec.Meta(ge=MIN_WEIGHT, le=MAX_WEIGHT)] | None = None
    """Share of the workers, in proportion to the weights of others."""
    held: bool | None = None
    """Whether its jobs are kept from running."""


@route(
    "PUT",
    "/v1/tenants/{name}",
    scope=Scope.OPERATOR,
    whole=True,
    summary="Set a tenant's weight, hold it, or let it go on.",
    query=ReasonQuery,
    body=Body(kind=TenantChange, example={"weight": 3, "held": False}),
    answers=[_TENANT],
    errors=[InvalidQuery, InvalidName, InvalidOption],
)
async def put(request: Request[ReasonQuery, TenantChange]) -> Reply:
    """Set what is given."""
    service, body, reason = request.service, request.body, reason_of(request.query)
    name = check_name("tenant", request.path["name"])
    if body.weight is None and body.held is None:
        raise InvalidOption("nothing is set", hint="give `weight` or `held`")
    settings = TenantSettings(weight=body.weight, held=body.held)
    engine = await service.client.engine()
    by = request.principal.name
    await service.client.repeatable(
        lambda: engine.settings.put_tenant(name, settings, by=by, reason=reason)
    )
    await auditing.note(request, About(name, name))
    await wake(service)
    found = await _tenant(service, name)
    if found is None:
        found = TenantInfo(name=name, weight=body.weight or DEFAULT_WEIGHT)
    return Reply(200, shapes.tenant(found, request.principal))


async def _tenants(service: HttpService) -> list[TenantInfo]:
    inspector = await service.inspector()
    return await service.client.repeatable(inspector.tenants)


async def _tenant(service: HttpService, name: str) -> TenantInfo | None:
    inspector = await service.inspector()
    return await service.client.repeatable(lambda: inspector.tenant(name))
