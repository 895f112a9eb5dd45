"""Schedules that are not stored: checked like those that are, and foretold."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

import msgspec

from lamplighter.model.errors import InvalidTime
from lamplighter.model.names import DEFAULT_TENANT
from lamplighter.model.recurring import Spec, jitter_of
from lamplighter.port import specs
from lamplighter.schedules import next_touch, upcoming
from lamplighter.schedules.making import instant
from lamplighter.server.auth import Principal
from lamplighter.server.calendars import Instant, calendar_of
from lamplighter.server.errors import InvalidQuery
from lamplighter.server.schedule_shapes import Foretold, foretold
from lamplighter.server.scheduling import NAMELESS, NO_JOB, ScheduleFields, job_options, made
from lamplighter.server.service import HttpService
from lamplighter.server.submission import checked_job

MOST_PREVIEWS = 100


class PreviewQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which occurrences to come."""

    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_PREVIEWS)] = 10
    after: Instant | None = None
    """Only those later than this; without it, than now."""


class PreviewBody(ScheduleFields, kw_only=True, forbid_unknown_fields=True):
    """A schedule as it might be put."""

    type: str | None = None
    """Name of the job type; without it only the times are looked at, and not the job."""


def check_after(query: PreviewQuery) -> None:
    """Refuse an instant that no occurrence can have."""
    if query.after is None:
        return
    try:
        instant("after", query.after)
    except InvalidTime as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None


async def foretell(
    service: HttpService, principal: Principal, body: PreviewBody, query: PreviewQuery
) -> Foretold:
    """Check a schedule as if it were put, and tell when it would fire. Nothing is stored."""
    check_after(query)
    spec = await _spec(service, principal, body)
    return await asyncio.to_thread(_foretold, spec, body, query)


def _foretold(spec: Spec, body: PreviewBody, query: PreviewQuery) -> Foretold:
    shift_ms = jitter_of(spec.template.tenant, body.id or NAMELESS, spec.policy.jitter_ms)
    return foretold(
        spec.calendar,
        None if body.id is None and shift_ms else shift_ms,
        upcoming(spec, query.count, after=query.after),
        next_touch(spec, after=query.after),
    )


async def _spec(service: HttpService, principal: Principal, body: PreviewBody) -> Spec:
    given = msgspec.structs.asdict(body)
    owner = body.tenant or principal.tenant or DEFAULT_TENANT
    calendar, job = await asyncio.to_thread(calendar_of, given), replace(NO_JOB, tenant=owner)
    if body.type is not None:
        options = job_options(given)
        job = await checked_job(service, principal, body.type, body.arguments, options)
        await service.queues.check((job.queue,))
    name = NAMELESS if body.id is None else body.id
    new = await asyncio.to_thread(made, name, calendar, job, given)
    await asyncio.to_thread(service.quotas.check_interval, principal, new)
    return specs.from_text(new.spec, new.id)
