"""Dead letters: jobs that failed for good, by cause; retry, replay or remove them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lamplighter.model.changes import Action, ChangeAnswer
from lamplighter.model.errors import InvalidInput, InvalidName, InvalidOption
from lamplighter.server import bulk, shapes
from lamplighter.server.auth import Scope
from lamplighter.server.errors import InvalidCursor, InvalidQuery, TenantFull
from lamplighter.server.filters import Choice, check_chosen, described, job_filter
from lamplighter.server.route import Answer, Body, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.notes import ReasonQuery, reason_of

_DEAD = ("dead",)


class DeadQuery(Choice, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters; several values of one parameter mean any of them."""


@route(
    "GET",
    "/v1/dlq",
    scope=Scope.OPERATOR,
    summary="Group the dead letters by type and cause, the most frequent first.",
    query=DeadQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.DeadGroups,
            text="The groups.",
            example={"groups": [examples.DEAD_GROUP], "at_least": False},
        )
    ],
    errors=[InvalidQuery],
)
async def list_groups(request: Request[DeadQuery, None]) -> Reply:
    """Count the dead letters."""
    service = request.service
    try:
        which = job_filter(request.query, request.principal, _DEAD)
    except InvalidInput as error:
        raise InvalidQuery(error.cause, hint=error.hint, value=error.value) from None
    if which is None:
        return Reply(200, shapes.DeadGroups(groups=[], at_least=False))
    inspector = await service.inspector()
    found = await service.client.repeatable(lambda: inspector.dead_groups(which))
    return Reply(200, shapes.dead_groups(found))


class DeadChoice(Choice, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters, and how many of them at once."""

    all: bool = False
    """Mean all of them, without a filter."""
    dry_run: bool = False
    """Only tell which would be meant."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=bulk.MOST)] = 100
    """How many at most in this request."""
    cursor: str | None = None
    """`next` of the answer before, to go on with older ones."""


_BODY = Body(kind=DeadChoice, example={"fingerprint": ["5d41402abc4b2a76"], "dry_run": True})
_DONE = Answer(
    status=200,
    kind=shapes.DeadDone,
    text="To which it was done, or would be, and how many are left.",
    example={
        "dry_run": True,
        "done": 0,
        "ids": [examples.ID],
        "left": 1,
        "at_least": False,
        "next": None,
    },
)


@route(
    "POST",
    "/v1/dlq:retry",
    scope=Scope.OPERATOR,
    summary="Let dead letters go on, some at a time: all attempts anew, the same effect keys.",
    query=ReasonQuery,
    body=_BODY,
    answers=[_DONE],
    errors=[InvalidQuery, InvalidCursor, InvalidName, InvalidOption, TenantFull],
)
async def retry(request: Request[ReasonQuery, DeadChoice]) -> Reply:
    """Retry what is chosen."""
    return await _act(request, Action.RETRY)


@route(
    "POST",
    "/v1/dlq:replay",
    scope=Scope.OPERATOR,
    summary="Start dead letters anew, some at a time: same id, new effect keys.",
    query=ReasonQuery,
    body=_BODY,
    answers=[_DONE],
    errors=[InvalidQuery, InvalidCursor, InvalidName, InvalidOption, TenantFull],
)
async def replay(request: Request[ReasonQuery, DeadChoice]) -> Reply:
    """Replay what is chosen."""
    return await _act(request, Action.REPLAY)


@route(
    "POST",
    "/v1/dlq:purge",
    scope=Scope.OPERATOR,
    summary="Remove dead letters for ever, some at a time.",
    query=ReasonQuery,
    body=_BODY,
    answers=[_DONE],
    errors=[InvalidQuery, InvalidCursor, InvalidName, InvalidOption],
)
async def purge(request: Request[ReasonQuery, DeadChoice]) -> Reply:
    """Remove what is chosen."""
    return await _act(request, Action.PURGE)


async def _act(request: Request[ReasonQuery, DeadChoice], action: Action) -> Reply:
    """Do it to some dead letters, from the newest to the oldest, so that none is met twice."""
    service, body, reason = request.service, request.body, reason_of(request.query)
    check_chosen(body, Choice, "dead letters", everything=body.all)
    which = job_filter(body, request.principal, _DEAD)
    if which is None:
        nothing = shapes.DeadDone(
            dry_run=body.dry_run, done=0, ids=[], left=0, at_least=False, next=None
        )
        return Reply(200, nothing)
    order = bulk.Order(
        action=action,
        which=which,
        described=lambda tenant: described(body, Choice, tenant),
        reason=reason,
        dry_run=body.dry_run,
        limit=body.limit,
        cursor=body.cursor,
    )
    part = await bulk.carry_out(request, order)
    inspector = await service.inspector()
    found = await service.client.repeatable(lambda: inspector.dead_groups(which))
    shape = shapes.DeadDone(
        dry_run=body.dry_run,
        done=0 if body.dry_run else part.answers[ChangeAnswer.DONE],
        ids=part.ids,
        left=sum(group.count for group in found.groups),
        at_least=found.at_least,
        next=part.next,
    )
    return Reply(200, shape)
