"""Jobs as a collection: submit them, list them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec

from lamplighter import runtime
from lamplighter.client import SPREAD, raise_conflict
from lamplighter.inspection.jobs import ChangeAction
from lamplighter.model import ids
from lamplighter.model.changes import Action, ChangeAnswer
from lamplighter.model.errors import (
    InvalidArguments,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    KeyConflict,
    LamplighterError,
    PayloadTooLarge,
    UnknownType,
)
from lamplighter.model.filters import Filter
from lamplighter.model.job import NewJob
from lamplighter.model.names import check_words, shown
from lamplighter.port.access import About
from lamplighter.port.store import Engine
from lamplighter.port.values import SubmitAnswer
from lamplighter.server import auditing, bulk, scheduling, shapes
from lamplighter.server.auth import Principal, Scope, check_scope
from lamplighter.server.calendars import calendar_of
from lamplighter.server.errors import (
    Forbidden,
    InvalidCursor,
    InvalidQuery,
    TenantFull,
    TooFrequent,
    TooManyQueues,
)
from lamplighter.server.filters import JobChoice, check_chosen, described, job_filter
from lamplighter.server.route import Answer, Body, Nothing, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.schedules import next_run, where
from lamplighter.server.service import HttpService
from lamplighter.server.submission import JobSchedule, Submission, new_job

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
    TenantFull,
    TooManyQueues,
)
_SCOPE = "POST /v1/jobs"
"""One scope of keys for single jobs and batches: a job repeated in a batch is the same job."""
_ONCE = ("delay", "run_at", "idempotency_key")
"""What is said of a job that runs once."""
_AT_ONCE = 50
"""Jobs that are read at once for a list."""
_BREATH = 200
"""Jobs of a batch after which other requests have their turn…"""
_BREATH_BYTES = 16 * 1024
"""…or bytes of their arguments, if those are large."""


@route(
    "POST",
    "/v1/jobs",
    scope=Scope.JOBS_WRITE,
    summary="Submit a job, to run now, after a delay, at an instant or by a schedule.",
    body=Body(kind=Submission, example=examples.SUBMISSION),
    keyed=True,
    answers=[
        Answer(
            status=201,
            kind=shapes.Submitted,
            text="The job is stored, or the schedule of it.",
            example={"id": examples.ID, "answer": "created"},
            headers={"Location": "Where the job, or the schedule, is."},
        ),
        Answer(
            status=200,
            kind=shapes.Submitted,
            text="This submission was made before, under the same key: nothing was stored. Or "
            "there was a schedule of this id: it is changed, or was exactly so before.",
            example={"id": examples.ID, "answer": "already"},
            headers={"Location": "Where the job, or the schedule, is."},
        ),
    ],
    errors=[*_REFUSALS, KeyConflict, TooFrequent],
)
async def submit(request: Request[Nothing, Submission]) -> Reply:
    """Store one job."""
    service = request.service
    if request.body.schedule is not None:
        return await _schedule(request, request.body.schedule)
    new = await new_job(service, request.principal, request.body, scope=_SCOPE, key=request.key)
    # First what may be refused for whoever asks: names that are let in take room from all.
    await service.quotas.admit_jobs(request.principal, 1)
    await service.queues.admit((new.queue,), request.principal.tenant)
    answer = await service.group_commit.submit(new)
    raise_conflict(new, answer)
    created = answer.answer is SubmitAnswer.CREATED
    shape = shapes.Submitted(id=answer.id, answer=answer.answer.value)
    return Reply(201 if created else 200, shape, {"Location": f"/v1/jobs/{answer.id}"})


async def _schedule(request: Request[Nothing, Submission], times: JobSchedule) -> Reply:
    """Put a schedule for the job, instead of storing it."""
    service, principal, body = request.service, request.principal, request.body
    check_scope(principal, Scope.SCHEDULES_WRITE)
    beside = [name for name in _ONCE if getattr(body, name) is not None]
    if beside or request.key is not None:
        name = beside[0] if beside else "Idempotency-Key"
        raise InvalidOption(
            f"{shown(name)} was given beside a schedule",
            hint="leave it out: the schedule says when, and under its id the same again changes "
            "nothing",
            value=name,
        )
    given = msgspec.structs.asdict(times)
    calendar = await asyncio.to_thread(calendar_of, given)
    job = await new_job(service, principal, body, scope=_SCOPE)
    name = scheduling.named(times.id, body.type)
    new = await asyncio.to_thread(scheduling.made, name, calendar, job, given)
    answer = (await scheduling.put(service, principal, new)).answer
    await auditing.note(request, About(new.id, new.tenant, answer))
    shape = shapes.Submitted(id=new.id, answer=answer, next_run=await next_run(service, new))
    status = 201 if answer == "created" else 200
    return Reply(status, shape, {"Location": where(principal, new)})


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
    errors=_REFUSALS,
)
async def submit_batch(request: Request[Nothing, list[Submission]]) -> Reply:
    """Store many jobs, in as few writes as the store's batches allow."""
    service = request.service
    jobs = await _checked(request)
    await service.quotas.admit_jobs(request.principal, len(jobs))
    await _admit_queues(service, jobs, request.principal.tenant)
    answers = await service.client.submit(jobs) if jobs else []
    return Reply(
        200,
        shapes.SubmittedBatch(
            jobs=[shapes.Submitted(id=each.id, answer=each.answer.value) for each in answers],
            created=sum(each.answer is SubmitAnswer.CREATED for each in answers),
        ),
    )


async def _checked(request: Request[Nothing, list[Submission]]) -> Sequence[NewJob]:
    """Check all jobs of a batch; an error says which one it is about."""
    service, jobs = request.service, list[NewJob]()
    divided, shard, since, size = await service.client.is_divided(), service.client.shard, 0, 0
    for number, given in enumerate(request.body):
        if since == _BREATH or size > _BREATH_BYTES:
            since = size = 0
            await runtime.sleep(0)
        try:
            if given.schedule is not None:
                raise InvalidOption(
                    "a batch takes no schedules",
                    hint="put them one by one, with POST /v1/schedules",
                    value="schedule",
                )
            new = await new_job(service, request.principal, given, scope=_SCOPE)
        except LamplighterError as error:
            error.cause = f"jobs[{number}]: {error.cause}"
            raise
        since, size = since + 1, size + len(new.args)
        if divided and new.key is None:
            # Neighbours go to the same shard, that is one write; very many do not.
            if number % SPREAD == 0:
                shard = runtime.random_bits(ids.SHARD_BITS)
            new = replace(new, id=ids.moved(new.id, shard))
        jobs.append(new)
    return jobs


async def _admit_queues(service: HttpService, jobs: Sequence[NewJob], tenant: str | None) -> None:
    """Let the queues of a batch in; an error says which job it is about."""
    try:
        await service.queues.admit((job.queue for job in jobs), tenant)
    except TooManyQueues as error:
        number = next(place for place, job in enumerate(jobs) if job.queue == error.value)
        error.cause = f"jobs[{number}]: {error.cause}"
        raise


class JobQuery(JobChoice, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; several values of one parameter mean any of them."""

    limit: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_PAGE
    """Jobs on a page; more than the setting `http_page` are cut to that."""
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
    service, query = request.service, request.query
    which = _filter(query, request.principal)
    if which is None:
        return Reply(200, shapes.JobPage(jobs=[], next=None))
    found: list[shapes.Job] = []

    async def read(engine: Engine, limit: int, place: str | None) -> _Read:
        found.clear()
        # Some at a time: records have all that is left out of a list, and that may be much.
        while True:
            step = min(_AT_ONCE, limit - len(found))
            page = await engine.inspector.jobs(which, limit=step, cursor=place)
            found.extend(map(shapes.brief, page.jobs))
            place = page.cursor
            if place is None or len(found) >= limit or len(page.jobs) < step:
                return _Read(place)

    _, following = await service.page(query, f"jobs {which!r}", read)
    return Reply(200, shapes.JobPage(jobs=found, next=following))


@dataclass(frozen=True, slots=True)
class _Read:
    cursor: str | None


def _filter(query: JobQuery, principal: Principal) -> Filter | None:
    try:
        return job_filter(query, principal, query.status)
    except LamplighterError as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None


class JobChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is done to which jobs, and to how many of them at once."""

    action: ChangeAction
    filter: JobChoice = msgspec.field(default_factory=JobChoice)
    """Which jobs. Those in a status in which the action does nothing are passed over. With
    statuses, a job that has left them meanwhile is a `conflict`."""
    all: bool = False
    """Mean all jobs, without a filter."""
    reason: str = ""
    """Kept with what is changed, for others to see."""
    dry_run: bool = False
    """Only tell what would be answered."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=bulk.MOST)] = 100
    """How many jobs at most in this request."""
    cursor: str | None = None
    """`next` of the answer before, to go on with older ones."""


@route(
    "POST",
    "/v1/jobs:change",
    scope=Scope.JOBS_WRITE,
    summary="Cancel, hold, unhold, retry, replay or purge what a filter means, some at a time.",
    body=Body(
        kind=JobChange,
        example={"action": "cancel", "filter": {"type": ["charge"]}, "reason": "wrong prices"},
    ),
    answers=[
        Answer(
            status=200,
            kind=shapes.JobsChanged,
            text="How many jobs were answered what, or would be. Purge asks for the scope "
            "`operator`.",
            example={
                "dry_run": False,
                "answers": {"done": 97, "requested": 2, "already": 0, "conflict": 1, "unknown": 0},
                "next": None,
            },
        )
    ],
    errors=[InvalidCursor, InvalidName, InvalidOption, TenantFull],
)
async def change(request: Request[Nothing, JobChange]) -> Reply:
    """Change some of the jobs, from the newest to the oldest."""
    principal, body, chosen = request.principal, request.body, request.body.filter
    action = Action(body.action)
    if action is Action.PURGE:
        check_scope(principal, Scope.OPERATOR)
    check_chosen(chosen, JobChoice, "jobs", everything=body.all)
    try:
        reason = check_words("reason", body.reason)
        which = job_filter(chosen, principal, chosen.status)
    except InvalidName:
        raise
    except InvalidInput as error:
        raise InvalidOption(error.cause, hint=error.hint, value=error.value) from None
    answers, following = Counter[ChangeAnswer](), None
    if which is not None:
        order = bulk.Order(
            action=action,
            which=which,
            described=lambda tenant: f"{action} {described(chosen, JobChoice, tenant)}",
            reason=reason,
            dry_run=body.dry_run,
            limit=body.limit,
            cursor=body.cursor,
        )
        part = await bulk.carry_out(request, order)
        answers, following = part.answers, part.next
    counts = shapes.ChangeAnswers(**{answer.value: answers[answer] for answer in ChangeAnswer})
    return Reply(200, shapes.JobsChanged(dry_run=body.dry_run, answers=counts, next=following))
