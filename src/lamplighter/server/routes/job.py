"""One job: look at it, operate it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec

from lamplighter.client import unknown
from lamplighter.handle import Handle
from lamplighter.model.errors import UnknownJob, WrongState
from lamplighter.model.job import TERMINAL, Attempt, JobState
from lamplighter.model.journal import unpack
from lamplighter.port.access import About
from lamplighter.port.values import ChangeAnswer
from lamplighter.server import auditing, explanations, input_shapes, shapes
from lamplighter.server.auth import Scope
from lamplighter.server.errors import InvalidCursor, InvalidQuery, TenantFull, TooManyListeners
from lamplighter.server.route import Answer, Nothing, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.notes import ReasonQuery, reason_of
from lamplighter.server.waits import LONGEST_WAIT

MOST_PIECES = 100
"""Pieces of a log on a page; each has many lines."""
MOST_ATTEMPTS = 100
"""Attempts on a page; each may have a traceback."""


class WaitQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long to wait."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0
    """Seconds to wait for the end of the job, at most; then it is answered as it is. More than 0.8
    of the setting `http_timeout`, which is 24 s by default, are cut to that."""


class LogQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which part of a log."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_PIECES)] = 20
    """Pieces of the log to read; each has some lines."""
    cursor: str | None = None
    """`next` of the page before."""


class AttemptQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which attempts."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS)] = MOST_ATTEMPTS
    """Attempts to read, the newest first of all."""
    cursor: str | None = None
    """`next` of the page before."""


_JOB = Answer(status=200, kind=shapes.Job, text="The job.", example=examples.JOB)
_CHANGED = Answer(status=200, kind=shapes.Job, text="The job after it.", example=examples.JOB)
_REVIVES = frozenset({"retry", "replay"})
"""What makes a job wait again that has ended."""
_REMEDIES = {
    "cancel": "only a job that has not ended can be cancelled",
    "hold": "only a job that has not ended can be held",
    "unhold": "only a job that has not ended can be held and unheld",
    "retry": "only a waiting job can be made due now, and only a dead one retried; `replay` starts "
    "any job that has ended anew",
    "replay": "only a job that has ended can be run again; cancel it first, or wait",
    "erase": "only a job that has ended can be erased; cancel it first, or wait",
}


@route(
    "GET",
    "/v1/jobs/{id}",
    scope=Scope.JOBS_READ,
    summary="Look at a job, or wait for its end.",
    query=WaitQuery,
    answers=[_JOB],
    errors=[UnknownJob, InvalidQuery, TooManyListeners],
)
async def show(request: Request[WaitQuery, None]) -> Reply:
    """Read the job, and wait for its end if that is asked for."""
    service, principal = request.service, request.principal
    record = await service.record(request.path["id"], principal)
    wait = request.query.wait
    if wait and record.state not in TERMINAL:
        record = await service.waits.until_ended(record, wait, principal)
    return Reply(200, shapes.job(record))


@route(
    "GET",
    "/v1/jobs/{id}/input",
    scope=Scope.JOBS_READ,
    summary="Look at what a job was given, how it is to be run, and how far it says it has come.",
    answers=[
        Answer(
            status=200,
            kind=input_shapes.JobInput,
            text="Its arguments and options.",
            example=examples.JOB_INPUT,
        )
    ],
    errors=[UnknownJob],
)
async def given(request: Request[Nothing, None]) -> Reply:
    """Read what the job was given."""
    record = await request.service.record(request.path["id"], request.principal)
    return Reply(200, input_shapes.job_input(record, request.principal))


@route(
    "DELETE",
    "/v1/jobs/{id}",
    scope=Scope.JOBS_WRITE,
    summary="Cancel a job: at once if it waits, by asking its handler to stop if it runs.",
    query=ReasonQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.Job,
            text="It is cancelled and will not run.",
            example=examples.CANCELLED,
        ),
        Answer(
            status=202,
            kind=shapes.Job,
            text="It runs and was asked to stop; how it ends is not decided yet.",
            example=examples.CANCELLING,
        ),
    ],
    errors=[UnknownJob, WrongState, InvalidQuery],
)
async def cancel(request: Request[ReasonQuery, None]) -> Reply:
    """Cancel the job."""
    answer, reply = await _change(request, "cancel")
    job = reply.body
    cancelled = isinstance(job, shapes.Job) and job.status.value == JobState.CANCELLED.value
    done = answer is ChangeAnswer.DONE or (answer is ChangeAnswer.ALREADY and cancelled)
    return replace(reply, status=200 if done else 202)


@route(
    "POST",
    "/v1/jobs/{id}/retry",
    scope=Scope.JOBS_WRITE,
    summary="Run a waiting job now; let a dead one go on, with the same effect keys.",
    query=ReasonQuery,
    answers=[_CHANGED],
    errors=[UnknownJob, WrongState, InvalidQuery, TenantFull],
)
async def retry(request: Request[ReasonQuery, None]) -> Reply:
    """Make the job due now."""
    return (await _change(request, "retry"))[1]


@route(
    "POST",
    "/v1/jobs/{id}/replay",
    scope=Scope.JOBS_WRITE,
    summary="Start a job that has ended anew, under the same id, with new effect keys.",
    query=ReasonQuery,
    answers=[_CHANGED],
    errors=[UnknownJob, WrongState, InvalidQuery, TenantFull],
)
async def replay(request: Request[ReasonQuery, None]) -> Reply:
    """Begin a new life of the job."""
    return (await _change(request, "replay"))[1]


@route(
    "POST",
    "/v1/jobs/{id}/hold",
    scope=Scope.JOBS_WRITE,
    summary="Keep a job from running until it is unheld.",
    query=ReasonQuery,
    answers=[_CHANGED],
    errors=[UnknownJob, WrongState, InvalidQuery],
)
async def hold(request: Request[ReasonQuery, None]) -> Reply:
    """Hold the job."""
    return (await _change(request, "hold"))[1]


@route(
    "POST",
    "/v1/jobs/{id}/unhold",
    scope=Scope.JOBS_WRITE,
    summary="Let a held job go on.",
    query=ReasonQuery,
    answers=[_CHANGED],
    errors=[UnknownJob, WrongState, InvalidQuery],
)
async def unhold(request: Request[ReasonQuery, None]) -> Reply:
    """Let the job go on."""
    return (await _change(request, "unhold"))[1]


@route(
    "POST",
    "/v1/jobs/{id}/erase",
    scope=Scope.JOBS_ERASE,
    summary="Erase a job that has ended, with all that belongs to it, for ever.",
    query=ReasonQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.ErasedJob,
            text="Nothing of it is left in the store.",
            example={"id": examples.ID},
        )
    ],
    errors=[UnknownJob, WrongState, InvalidQuery],
)
async def erase(request: Request[ReasonQuery, None]) -> Reply:
    """Erase the job; what is noted has its id, and nothing that it held."""
    service, principal = request.service, request.principal
    reason = reason_of(request.query)
    record = await service.record(request.path["id"], principal)
    try:
        await Handle[object](service.client, record.job.id).erase(by=principal.name, reason=reason)
    except WrongState as error:
        raise WrongState(error.cause, hint=_REMEDIES["erase"], value=error.value) from None
    await auditing.note(request, About(record.job.id, record.job.tenant, "done"))
    return Reply(200, shapes.ErasedJob(id=record.job.id))


async def _change(request: Request[ReasonQuery, None], verb: str) -> tuple[ChangeAnswer, Reply]:
    """Do an operator's verb in the name of whoever asks, and read the job after it."""
    service, principal = request.service, request.principal
    reason = reason_of(request.query)
    record = await service.record(request.path["id"], principal)
    if verb in _REVIVES and record.state in TERMINAL:
        await service.quotas.admit_jobs(principal, 1)
    handle = Handle[object](service.client, record.job.id)
    try:
        match verb:
            case "cancel":
                answer = await handle.cancel(by=principal.name, reason=reason)
            case "hold":
                answer = await handle.hold(by=principal.name, reason=reason)
            case "unhold":
                answer = await handle.unhold(by=principal.name, reason=reason)
            case "replay":
                answer = await handle.replay(by=principal.name, reason=reason)
            case _:
                answer = await handle.retry(by=principal.name, reason=reason)
    except WrongState as error:
        raise WrongState(error.cause, hint=_REMEDIES[verb], value=error.value) from None
    await auditing.note(request, About(record.job.id, record.job.tenant, answer.value))
    after = await service.client.record(record.job.id)
    return answer, Reply(200, shapes.job(after, content=principal.has(Scope.JOBS_READ)))


@route(
    "GET",
    "/v1/jobs/{id}/why",
    scope=Scope.OPERATOR,
    summary="Say why a job is not running.",
    answers=[
        Answer(
            status=200,
            kind=explanations.Explanation,
            text="The reasons, the most decisive first.",
            example={
                "id": examples.ID,
                "status": "scheduled",
                "reasons": [
                    {
                        "why": "not_due",
                        "text": "it is due in 50.0 s",
                        "until": "2030-01-31T12:01:00Z",
                        "count": None,
                        "note": None,
                    }
                ],
            },
        )
    ],
    errors=[UnknownJob],
)
async def why(request: Request[Nothing, None]) -> Reply:
    """Explain the job."""
    service = request.service
    record = await service.record(request.path["id"], request.principal)
    inspector = await service.inspector()
    found = await service.client.repeatable(lambda: inspector.explain(record.job.id))
    if found is None:
        raise unknown(record.job.id)
    status = found.record.status
    reasons = [
        explanations.why_not(reason, found.record, request.principal) for reason in found.reasons
    ]
    return Reply(200, explanations.Explanation(id=record.job.id, status=status, reasons=reasons))


@route(
    "GET",
    "/v1/jobs/{id}/attempts",
    scope=Scope.OPERATOR,
    summary="List the newest attempts to run a job, oldest first.",
    query=AttemptQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.Attempts,
            text="Attempts that failed, the one that ended the job, and the present one.",
            example={
                "attempts": [
                    {
                        "generation": 0,
                        "number": 1,
                        "lease": 1,
                        "outcome": "failed",
                        "worker": "host-5c1d0a2e-4711-9f3b21aa",
                        "started_at": "2030-01-31T12:01:00Z",
                        "finished_at": "2030-01-31T12:01:01Z",
                        "error": {
                            "type": "CardDeclined",
                            "message": "no money",
                            "fingerprint": "5d41402abc4b2a76",
                            "traceback": 'File "shop.py", line 9, in charge',
                        },
                    }
                ],
                "next": None,
            },
        )
    ],
    errors=[UnknownJob, InvalidQuery, InvalidCursor],
)
async def attempts(request: Request[AttemptQuery, None]) -> Reply:
    """Read one page of the attempts, from the newest back."""
    service, query = request.service, request.query
    record = await service.record(request.path["id"], request.principal)
    job_id, listing = record.job.id, f"attempts {record.job.id}"
    place = service.cursors.read(query.cursor, listing)
    until = None if place is None else int(place)
    inspector = await service.inspector()
    found = await service.client.repeatable(
        lambda: inspector.attempts(job_id, until=until, limit=query.limit + 1)
    )
    shown = found[-query.limit :]
    before = f"{shown[0].lease - 1}" if len(found) > len(shown) else None
    whole = request.principal.tenant is None
    return Reply(
        200,
        shapes.Attempts(
            attempts=[shapes.attempt(each, worker=whole) for each in shown],
            next=service.cursors.written(before, listing),
        ),
    )


@route(
    "GET",
    "/v1/jobs/{id}/logs",
    scope=Scope.JOBS_READ,
    summary="Read what a job has logged and printed, oldest first.",
    query=LogQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.LogPage,
            text="Some lines; the cursor leads on, also to lines that come later.",
            example={
                "lines": [
                    {
                        "lease": 1,
                        "number": 0,
                        "at": "2030-01-31T12:01:00Z",
                        "level": "info",
                        "text": "charging o-1",
                    }
                ],
                "next": None,
            },
        )
    ],
    errors=[UnknownJob, InvalidQuery, InvalidCursor],
)
async def logs(request: Request[LogQuery, None]) -> Reply:
    """Read one page of the log."""
    service, query = request.service, request.query
    record = await service.record(request.path["id"], request.principal)
    job_id, listing = record.job.id, f"logs {record.job.id}"
    place = service.cursors.read(query.cursor, listing)
    after = _place(place)
    inspector = await service.inspector()
    pieces = await service.client.repeatable(
        lambda: inspector.logs(job_id, tenant=record.job.tenant, after=after, limit=query.limit)
    )
    known: dict[int, Attempt] = {}
    if pieces:
        begun = await inspector.attempts(job_id, until=pieces[-1].lease, limit=MOST_PIECES)
        known = {each.lease: each for each in begun}
    lines = [
        shapes.log_line(line, found.lease, known.get(found.lease))
        for found in pieces
        for line in unpack(found.piece.data)
    ]
    if pieces:
        place = f"{pieces[-1].lease}.{pieces[-1].piece.number}"
    return Reply(200, shapes.LogPage(lines=lines, next=service.cursors.written(place, listing)))


def _place(cursor: str | None) -> tuple[int, int] | None:
    if cursor is None:
        return None
    lease, _, number = cursor.partition(".")
    return int(lease), int(number)
