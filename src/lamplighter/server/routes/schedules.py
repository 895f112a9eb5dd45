"""Schedules as a collection: put them, list them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from lamplighter.model.errors import (
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    LamplighterError,
    PayloadTooLarge,
    UnknownType,
)
from lamplighter.model.names import DEFAULT_TENANT, check_schedule
from lamplighter.port.access import About
from lamplighter.port.schedules import NewSchedule, ScheduleFilter
from lamplighter.schedules import Schedule
from lamplighter.server import auditing, scheduling
from lamplighter.server import schedule_shapes as shapes
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.errors import (
    Forbidden,
    InvalidCursor,
    InvalidQuery,
    TenantFull,
    TooFrequent,
    TooManyQueues,
)
from lamplighter.server.filters import names
from lamplighter.server.foresight import PreviewBody, PreviewQuery, foretell
from lamplighter.server.paths import location
from lamplighter.server.route import Answer, Body, Nothing, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.scheduling import NewScheduleBody
from lamplighter.server.service import HttpService

DEFAULT_PAGE = 50
COLLECTION = "/v1/schedules"

REFUSALS = (
    Forbidden,
    UnknownType,
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
    TenantFull,
    TooFrequent,
    TooManyQueues,
)
_WHERE = {"Location": "Where the schedule is."}


@route(
    "POST",
    COLLECTION,
    scope=Scope.SCHEDULES_WRITE,
    summary="Make a schedule, or change the tenant's one of this id. It fires no occurrence twice.",
    body=Body(kind=NewScheduleBody, example=examples.NEW_SCHEDULE),
    answers=[
        Answer(
            status=201,
            kind=shapes.PutSchedule,
            text="The schedule is made.",
            example=examples.PUT_SCHEDULE,
            headers=_WHERE,
        ),
        Answer(
            status=200,
            kind=shapes.PutSchedule,
            text="There was one of this id: it is changed, or was exactly so before.",
            example={**examples.PUT_SCHEDULE, "answer": "changed", "version": 2},
            headers=_WHERE,
        ),
    ],
    errors=REFUSALS,
)
async def put(request: Request[Nothing, NewScheduleBody]) -> Reply:
    """Put one schedule."""
    service, principal = request.service, request.principal
    new = await scheduling.new_of(service, principal, request.body)
    answer = await scheduling.put(service, principal, new)
    await auditing.note(request, About(new.id, new.tenant, answer.answer))
    shape = shapes.PutSchedule(
        id=new.id,
        tenant=new.tenant,
        answer=answer.answer,
        version=answer.version,
        next_run=await next_run(service, new),
    )
    status = 201 if answer.answer == "created" else 200
    return Reply(status, shape, {"Location": where(principal, new)})


def where(principal: Principal, new: NewSchedule) -> str:
    """Return where whoever asks finds a schedule: operators name other tenants than the default."""
    named = principal.tenant is None and new.tenant != DEFAULT_TENANT
    return location(COLLECTION, new.id, tenant=new.tenant if named else None)


async def next_run(service: HttpService, new: NewSchedule) -> datetime | None:
    """Say when a schedule that was just put is fired next, as the store has it."""
    engine = await service.client.engine()
    found = await service.client.repeatable(
        lambda: engine.schedules.schedule(new.id, tenant=new.tenant)
    )
    return None if found is None else shapes.next_run(Schedule(found))


@route(
    "POST",
    f"{COLLECTION}:preview",
    scope=Scope.SCHEDULES_READ,
    summary="Foretell when a schedule would fire, and check it, without storing anything.",
    query=PreviewQuery,
    body=Body(kind=PreviewBody, example=examples.NEW_SCHEDULE),
    answers=[
        Answer(
            status=200,
            kind=shapes.Foretold,
            text="It could be put; its next occurrences, fewer if there are no more.",
            example=examples.FORETOLD,
        )
    ],
    errors=[InvalidQuery, *REFUSALS],
)
async def preview(request: Request[PreviewQuery, PreviewBody]) -> Reply:
    """Look at a schedule before it is put."""
    shape = await foretell(request.service, request.principal, request.body, request.query)
    return Reply(200, shape)


class ScheduleQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which schedules; several values of one parameter mean any of them."""

    type: list[str] = msgspec.field(default_factory=list[str])
    tenant: list[str] = msgspec.field(default_factory=list[str])
    prefix: str = ""
    """Ids that begin so."""
    held: bool | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_PAGE
    """Schedules on a page; more than the setting `http_page` are cut to that."""
    cursor: str | None = None
    """`next` of the page before."""


@route(
    "GET",
    COLLECTION,
    scope=Scope.SCHEDULES_READ,
    summary="List schedules by tenant and id.",
    query=ScheduleQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.SchedulePage,
            text="A page of schedules.",
            example={"schedules": [examples.SCHEDULE], "next": None},
        )
    ],
    errors=[InvalidQuery, InvalidCursor],
)
async def list_schedules(request: Request[ScheduleQuery, None]) -> Reply:
    """Read one page."""
    service, query = request.service, request.query
    which = _filter(query, request.principal)
    if which is None:
        return Reply(200, shapes.SchedulePage(schedules=[], next=None))
    page, following = await service.page(
        query,
        f"schedules {which!r}",
        lambda engine, limit, place: engine.schedules.schedules(which, limit=limit, cursor=place),
    )
    shown = [shapes.brief(Schedule(record), request.principal) for record in page.schedules]
    return Reply(200, shapes.SchedulePage(schedules=shown, next=following))


def _filter(query: ScheduleQuery, principal: Principal) -> ScheduleFilter | None:
    """Check the filter; None: it means only schedules that do not exist for whoever asks."""
    own = principal.tenant
    try:
        tenants = names("tenant", query.tenant)
        if own is not None and tenants and own not in tenants:
            return None
        return ScheduleFilter(
            types=names("job type", query.type),
            tenants=tenants if own is None else (own,),
            prefix=check_schedule(query.prefix) if query.prefix else "",
            held=query.held,
        )
    except LamplighterError as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None
