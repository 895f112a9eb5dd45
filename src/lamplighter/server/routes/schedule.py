"""One schedule: look at it, change it, operate it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Protocol, cast

import msgspec

from lamplighter.model.errors import (
    InvalidInput,
    InvalidOption,
    InvalidTime,
    UnknownSchedule,
    WrongState,
)
from lamplighter.model.names import check_key, shown
from lamplighter.model.recurring import BACKFILL_LIMIT
from lamplighter.port.access import About
from lamplighter.port.schedules import ScheduleAnswer, ScheduleChanged
from lamplighter.schedules import Schedule, next_touch
from lamplighter.server import auditing, scheduling
from lamplighter.server import schedule_shapes as shapes
from lamplighter.server.auth import Scope
from lamplighter.server.calendars import Instant
from lamplighter.server.errors import InvalidCursor, InvalidQuery, PreconditionFailed, TenantFull
from lamplighter.server.foresight import PreviewQuery, check_after
from lamplighter.server.reading import if_match
from lamplighter.server.route import Answer, Body, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.notes import ReasonQuery, reason_of
from lamplighter.server.routes.schedules import DEFAULT_PAGE, REFUSALS
from lamplighter.server.scheduling import ScheduleChange
from lamplighter.server.service import unknown_schedule

_TAG = {"ETag": "Its version, for `If-Match`."}
_SCHEDULE = Answer(
    status=200,
    kind=shapes.ScheduleShape,
    text="The schedule.",
    example=examples.SCHEDULE,
    headers=_TAG,
)
_CHANGED = Answer(
    status=200,
    kind=shapes.ScheduleShape,
    text="The schedule after it.",
    example=examples.SCHEDULE,
    headers=_TAG,
)


class TenantQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose schedule is meant."""

    tenant: str | None = None
    """Whose it is: for callers that are bound to no tenant; `default` without it."""


class OperateQuery(ReasonQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose schedule is meant, and why something is done to it."""

    tenant: str | None = None
    """Whose it is: for callers that are bound to no tenant; `default` without it."""


class _Named(Protocol):
    """A query that says whose schedule is meant."""

    tenant: str | None


async def _found(request: Request[Any, Any]) -> Schedule:
    """Read the schedule that a request means."""
    query = cast("_Named", request.query)
    return await request.service.schedule(request.path["id"], request.principal, query.tenant)


@route(
    "GET",
    "/v1/schedules/{id}",
    scope=Scope.SCHEDULES_READ,
    summary="Look at a schedule.",
    query=TenantQuery,
    answers=[_SCHEDULE],
    errors=[UnknownSchedule, InvalidQuery],
)
async def show(request: Request[TenantQuery, None]) -> Reply:
    """Read the schedule."""
    found = await _found(request)
    return Reply(200, shapes.schedule(found, request.principal), {"ETag": tag_of(found)})


class VersionQuery(TenantQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose schedule is meant, and which version of it."""

    version: int | None = None
    """The version that was looked at: if it is another by now, nothing is changed."""


@route(
    "PATCH",
    "/v1/schedules/{id}",
    scope=Scope.SCHEDULES_WRITE,
    summary="Change what is given about a schedule; the rest stays. null means: by default.",
    query=VersionQuery,
    body=Body(kind=ScheduleChange, example={"cron": "45 2 * * *", "max_runs": None}),
    answers=[_CHANGED],
    errors=[UnknownSchedule, WrongState, InvalidQuery, InvalidInput, *REFUSALS],
    matches=True,
)
async def change(request: Request[VersionQuery, msgspec.Struct]) -> Reply:
    """Put the schedule as it is to be from now on."""
    service, principal, version = request.service, request.principal, request.query.version
    found = await _found(request)
    tags = if_match(request.scope["headers"])
    if tags is not None and tag_of(found) not in tags:
        raise _other_version(found)
    if tags is not None and version is None:
        version = found.record.version
    try:
        before = await scheduling.change(service, principal, found, request.body, version)
    except WrongState:
        if tags is None:
            raise
        raise _other_version(await _found(request)) from None
    return await _reply(request, 200, before)


def tag_of(found: Schedule) -> str:
    """Return the `ETag` of a schedule."""
    return f'"{found.record.version}"'


def _other_version(found: Schedule) -> PreconditionFailed:
    return PreconditionFailed(
        f"the schedule {shown(found.id)} has the version {found.record.version} by now",
        hint="look at it again, and repeat the change with its new `ETag`",
        value=found.record.version,
    )


@route(
    "DELETE",
    "/v1/schedules/{id}",
    scope=Scope.SCHEDULES_WRITE,
    summary="Remove a schedule and its history. Jobs that it has made go on.",
    query=OperateQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.DeletedSchedule,
            text="It is gone.",
            example={"id": examples.SCHEDULE_ID},
        )
    ],
    errors=[UnknownSchedule, InvalidQuery],
)
async def delete(request: Request[OperateQuery, None]) -> Reply:
    """Remove the schedule."""
    found = await _operate(request, request.service.schedules.delete)
    await auditing.note(request, _about(found))
    return Reply(200, shapes.DeletedSchedule(id=found.id))


async def _operate(
    request: Request[OperateQuery, None], verb: Callable[..., Awaitable[list[ScheduleChanged]]]
) -> Schedule:
    """Do what is asked for to a schedule, and return it as it was."""
    principal, reason = request.principal, reason_of(request.query)
    found = await _found(request)
    (answer,) = await verb(found.id, by=principal.name, reason=reason, tenant=found.record.tenant)
    if answer.answer is ScheduleAnswer.UNKNOWN:
        raise unknown_schedule(found.id)
    return found


# ── operate ──────────────────────────────────────────────────────────────────────────────────


@route(
    "POST",
    "/v1/schedules/{id}/hold",
    scope=Scope.SCHEDULES_WRITE,
    summary="Keep a schedule from being fired. Jobs that it has made go on.",
    query=OperateQuery,
    answers=[_CHANGED],
    errors=[UnknownSchedule, InvalidQuery],
)
async def hold(request: Request[OperateQuery, None]) -> Reply:
    """Hold the schedule."""
    return await _reply(request, 200, await _operate(request, request.service.schedules.hold))


@route(
    "POST",
    "/v1/schedules/{id}/unhold",
    scope=Scope.SCHEDULES_WRITE,
    summary="Let a held schedule go on; what was missed is made up for as its policy says.",
    query=OperateQuery,
    answers=[_CHANGED],
    errors=[UnknownSchedule, InvalidQuery],
)
async def unhold(request: Request[OperateQuery, None]) -> Reply:
    """Let the schedule go on."""
    return await _reply(request, 200, await _operate(request, request.service.schedules.unhold))


@route(
    "POST",
    "/v1/schedules/{id}/trigger",
    scope=Scope.SCHEDULES_WRITE,
    summary="Run the job of a schedule now, as its overlap policy allows.",
    query=OperateQuery,
    keyed=True,
    answers=[
        Answer(
            status=200,
            kind=shapes.TriggeredRun,
            text="It has a job that runs now, or when the run before it has ended.",
            example={"id": examples.SCHEDULE_ID, "job": examples.ID, "state": "started"},
        )
    ],
    errors=[UnknownSchedule, WrongState, InvalidQuery, InvalidInput, TenantFull],
)
async def trigger(request: Request[OperateQuery, None]) -> Reply:
    """Make a run that is not in the calendar."""
    service, principal, reason = request.service, request.principal, reason_of(request.query)
    found = await _found(request)
    await service.quotas.admit_jobs(principal, 1)
    key = None if request.key is None else f"{principal.name}\0{check_key(request.key)}"
    answer, _ = await service.schedules.trigger(
        found.id, by=principal.name, reason=reason, tenant=found.record.tenant, key=key
    )
    if answer.job_id is None or answer.state is None:
        policy = ""
        if principal.has(Scope.SCHEDULES_READ):
            policy = f" `{found.spec.policy.overlap.value}`"
        raise WrongState(
            f"the schedule {shown(found.id)} was not run: the run before has not ended, and its "
            f"overlap policy{policy} lets no more of them wait",
            hint="wait for its end, cancel that job, or change `overlap` of the schedule",
            value=found.id,
        )
    await auditing.note(request, _about(found))
    return Reply(200, shapes.TriggeredRun(id=found.id, job=answer.job_id, state=answer.state))


class BackfillBody(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename={"from_": "from"}
):
    """Which occurrences of the past are to be run."""

    from_: Instant
    """After this instant…"""
    to: Instant
    """…up to this one."""
    at_once: Annotated[int, msgspec.Meta(ge=1, le=BACKFILL_LIMIT)] = 1
    """How many of its jobs may be unfinished at once."""


@route(
    "POST",
    "/v1/schedules/{id}/backfill",
    scope=Scope.SCHEDULES_WRITE,
    summary="Run occurrences of the past that have not been run, a few at a time.",
    query=OperateQuery,
    body=Body(
        kind=BackfillBody,
        example={"from": "2030-01-01T00:00:00Z", "to": "2030-01-31T00:00:00Z", "at_once": 2},
    ),
    answers=[
        Answer(
            status=202,
            kind=shapes.ScheduleShape,
            text="It has begun; `backfill` of the schedule tells how far it is.",
            example=examples.BACKFILLING,
            headers=_TAG,
        )
    ],
    errors=[UnknownSchedule, WrongState, InvalidQuery, InvalidOption, InvalidTime],
)
async def backfill(request: Request[OperateQuery, BackfillBody]) -> Reply:
    """Begin the backfill; the same again is no other one."""
    service, principal, body = request.service, request.principal, request.body
    reason = reason_of(request.query)
    found = await _found(request)
    try:
        await service.schedules.backfill(
            found.id,
            body.from_,
            body.to,
            limit=body.at_once,
            by=principal.name,
            reason=reason,
            tenant=found.record.tenant,
        )
    except WrongState as error:
        hint = "wait for its end: `backfill` of the schedule tells how far it is"
        raise WrongState(error.cause, hint=hint, value=error.value) from None
    return await _reply(request, 202, found)


def _about(found: Schedule) -> About:
    return About(found.id, found.record.tenant)


async def _reply(request: Request[Any, Any], status: int, before: Schedule) -> Reply:
    """Note what was done to a schedule, and answer with the schedule after it."""
    await auditing.note(request, _about(before))
    after = await request.service.schedule(before.id, request.principal, before.record.tenant)
    content = request.principal.has(Scope.SCHEDULES_READ)
    shape = shapes.schedule(after, request.principal, content=content)
    return Reply(status, shape, {"ETag": tag_of(after)})


# ── look ahead and back ──────────────────────────────────────────────────────────────────────


class RunQuery(TenantQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose schedule is meant, and which of its runs."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_PAGE
    """Runs on a page; more than the setting `http_page` are cut to that."""
    cursor: str | None = None
    """`next` of the page before."""


@route(
    "GET",
    "/v1/schedules/{id}/runs",
    scope=Scope.SCHEDULES_READ,
    summary="List what became of the occurrences of a schedule, the latest due first.",
    query=RunQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.RunPage,
            text="A page of runs.",
            example={"runs": [examples.RUN], "next": None},
        )
    ],
    errors=[UnknownSchedule, InvalidQuery, InvalidCursor],
)
async def runs(request: Request[RunQuery, None]) -> Reply:
    """Read one page of the history."""
    service, query = request.service, request.query
    found = await _found(request)
    page, following = await service.page(
        query,
        f"runs {found.record.tenant}\0{found.id}",
        lambda engine, limit, place: engine.schedules.runs(
            found.id, tenant=found.record.tenant, limit=limit, cursor=place
        ),
    )
    return Reply(200, shapes.RunPage(runs=list(map(shapes.run, page.runs)), next=following))


class AheadQuery(PreviewQuery, kw_only=True, forbid_unknown_fields=True):
    """Whose schedule is meant, and which of its occurrences to come."""

    tenant: str | None = None
    """Whose it is: for callers that are bound to no tenant; `default` without it."""


@route(
    "GET",
    "/v1/schedules/{id}/preview",
    scope=Scope.SCHEDULES_READ,
    summary="Foretell when a schedule fires, and where a change of the clocks acts.",
    query=AheadQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.Previews,
            text="The next occurrences; fewer if there are no more.",
            example=examples.PREVIEW,
        )
    ],
    errors=[UnknownSchedule, InvalidQuery, InvalidInput],
)
async def preview(request: Request[AheadQuery, None]) -> Reply:
    """Work out the next occurrences."""
    check_after(request.query)
    count, after = request.query.count, request.query.after
    found = await _found(request)
    runs = await asyncio.to_thread(found.preview, count, after=after)
    touch = await asyncio.to_thread(next_touch, found.spec, after=after)
    return Reply(200, shapes.previews(found, runs, touch))
