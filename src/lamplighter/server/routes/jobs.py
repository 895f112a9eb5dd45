"""Jobs as a collection: submit them, list them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import msgspec

from lamplighter import runtime
from lamplighter.client import raise_conflict
from lamplighter.model import ids
from lamplighter.model.errors import (
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    KeyConflict,
    LamplighterError,
    PayloadTooLarge,
    UnknownType,
)
from lamplighter.model.job import NewJob
from lamplighter.model.names import check_name
from lamplighter.model.timetable import milliseconds
from lamplighter.port.filters import statuses_of
from lamplighter.port.values import JobFilter, SubmitAnswer
from lamplighter.server import shapes
from lamplighter.server.auth import Scope
from lamplighter.server.errors import Forbidden, InvalidCursor, InvalidQuery, LimitExceeded
from lamplighter.server.route import Answer, Body, Nothing, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.submission import Submission, new_job

DEFAULT_PAGE = 50

_REFUSALS = (
    Forbidden,
    UnknownType,
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
)
_SCOPE = "POST /v1/jobs"
"""One scope of keys for single jobs and batches: a job repeated in a batch is the same job."""
_BREATH = 200
"""Jobs of a batch after which other requests have their turn."""


@route(
    "POST",
    "/v1/jobs",
    scope=Scope.JOBS_WRITE,
    summary="Submit a job, to run now, after a delay or at an instant.",
    body=Body(kind=Submission, example=examples.SUBMISSION),
    keyed=True,
    answers=[
        Answer(
            status=201,
            kind=shapes.Submitted,
            text="The job is stored.",
            example={"id": examples.ID, "answer": "created"},
            headers={"Location": "Where the job is."},
        ),
        Answer(
            status=200,
            kind=shapes.Submitted,
            text="This submission was made before, under the same key: nothing was stored.",
            example={"id": examples.ID, "answer": "already"},
            headers={"Location": "Where the job is."},
        ),
    ],
    errors=[*_REFUSALS, KeyConflict],
)
async def submit(request: Request[Nothing, Submission]) -> Reply:
    """Store one job."""
    service = request.service
    new = await new_job(service, request.principal, request.body, scope=_SCOPE, key=request.key)
    (answer,) = await service.client.submit([new])
    raise_conflict(new, answer)
    created = answer.answer is SubmitAnswer.CREATED
    shape = shapes.Submitted(id=answer.id, answer=answer.answer)
    return Reply(201 if created else 200, shape, {"Location": f"/v1/jobs/{answer.id}"})


@route(
    "POST",
    "/v1/jobs:batch",
    scope=Scope.JOBS_WRITE,
    summary="Submit many jobs. All are checked before the first is stored.",
    body=Body(kind=Submission, example=[examples.SUBMISSION], many=True),
    answers=[
        Answer(
            status=200,
            kind=shapes.SubmittedBatch,
            text="What became of each, in their order.",
            example={"jobs": [{"id": examples.ID, "answer": "created"}], "created": 1},
        )
    ],
    errors=[*_REFUSALS, LimitExceeded],
)
async def submit_batch(request: Request[Nothing, list[Submission]]) -> Reply:
    """Store many jobs, in as few writes as the store's batches allow."""
    service, limit = request.service, request.service.settings.http_batch_jobs
    if len(request.body) > limit:
        raise LimitExceeded(
            f"the batch has {len(request.body):,} jobs, the limit is {limit:,}",
            hint="send several batches; the setting `http_batch_jobs` has the limit",
            value=len(request.body),
        )
    jobs = await _checked(request)
    answers = await service.client.submit(jobs) if jobs else []
    return Reply(
        200,
        shapes.SubmittedBatch(
            jobs=[shapes.Submitted(id=each.id, answer=each.answer) for each in answers],
            created=sum(each.answer is SubmitAnswer.CREATED for each in answers),
        ),
    )


async def _checked(request: Request[Nothing, list[Submission]]) -> Sequence[NewJob]:
    """Check all jobs of a batch; an error says which one it is about."""
    service, jobs = request.service, list[NewJob]()
    shard = service.client.shard
    for number, given in enumerate(request.body):
        if number % _BREATH == _BREATH - 1:
            await runtime.sleep(0)
        try:
            new = await new_job(service, request.principal, given, scope=_SCOPE)
        except LamplighterError as error:
            error.cause = f"jobs[{number}]: {error.cause}"
            raise
        # Jobs without keys stay together: in a store of several shards that is one write.
        jobs.append(new if new.key else replace(new, id=ids.moved(new.id, shard)))
    return jobs


class JobQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; several values of one parameter mean any of them."""

    status: list[str] = msgspec.field(default_factory=list[str])
    """A status, or `pending` (scheduled, ready, retrying) or `failed` (dead)."""
    type: list[str] = msgspec.field(default_factory=list[str])
    queue: list[str] = msgspec.field(default_factory=list[str])
    tenant: list[str] = msgspec.field(default_factory=list[str])
    fingerprint: list[str] = msgspec.field(default_factory=list[str])
    """Kind of the last error."""
    tag: str | None = None
    finished_after: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    finished_before: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_PAGE
    """Jobs on a page."""
    cursor: str | None = None
    """`next` of the page before."""


@route(
    "GET",
    "/v1/jobs",
    scope=Scope.JOBS_READ,
    summary="List jobs, newest first.",
    query=JobQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.JobPage,
            text="A page of jobs.",
            example={"jobs": [examples.JOB], "next": None},
        )
    ],
    errors=[InvalidQuery, InvalidCursor],
)
async def list_jobs(request: Request[JobQuery, None]) -> Reply:
    """Read one page."""
    service, query, own = request.service, request.query, request.principal.tenant
    if own is not None and query.tenant and own not in query.tenant:
        # Jobs of other tenants do not exist for whoever has one of their own.
        return Reply(200, shapes.JobPage(jobs=[], next=None))
    which = _filter(query, query.tenant if own is None else [own])
    listing = f"jobs {which!r}"
    place = service.cursors.read(query.cursor, listing)
    inspector = await service.inspector()
    limit = min(query.limit, service.settings.http_page)
    page = await service.client.repeatable(lambda: inspector.jobs(which, limit=limit, cursor=place))
    following = service.cursors.written(page.cursor, listing)
    return Reply(200, shapes.JobPage(jobs=list(map(shapes.job, page.jobs)), next=following))


def _filter(query: JobQuery, tenants: Sequence[str]) -> JobFilter:
    """Check the filter; not every store can look for a name that cannot be."""
    after, before = query.finished_after, query.finished_before
    try:
        which = JobFilter(
            statuses=tuple(query.status),
            types=_names("job type", query.type),
            queues=_names("queue", query.queue),
            tenants=_names("tenant", tenants),
            fingerprints=_names("fingerprint", query.fingerprint),
            tag=None if query.tag is None else check_name("tag", query.tag),
            finished_after_ms=None if after is None else milliseconds(after),
            finished_before_ms=None if before is None else milliseconds(before),
        )
        statuses_of(which)
    except LamplighterError as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None
    return which


def _names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    return tuple(check_name(what, name) for name in given)
