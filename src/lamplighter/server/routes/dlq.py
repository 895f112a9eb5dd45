"""Dead letters: jobs that failed for good, by cause; retry, replay or remove them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from lamplighter.model.errors import InvalidInput, InvalidName, InvalidOption
from lamplighter.model.filters import Filter
from lamplighter.model.job import JobRecord
from lamplighter.port.access import About
from lamplighter.port.store import FINISHED_TOPIC, Engine, queue_topic
from lamplighter.port.values import ChangeAnswer
from lamplighter.server import auditing, shapes
from lamplighter.server.auth import Scope
from lamplighter.server.errors import InvalidCursor, InvalidQuery, TenantFull
from lamplighter.server.filters import Choice, job_filter
from lamplighter.server.route import Answer, Body, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.notes import ReasonQuery, reason_of

MOST = 1_000
"""Dead letters that one request may be about."""

_PAGE = 100
_LOOKS = 20
"""Pages that one request reads at most; a page may be short."""
_DEAD = ("dead",)
DeadVerb = Literal["retry", "replay", "purge"]
_FOUND_DONE = {
    "retry": {ChangeAnswer.ALREADY, ChangeAnswer.CONFLICT},
    "replay": {ChangeAnswer.CONFLICT},
    "purge": {ChangeAnswer.UNKNOWN},
}
"""How jobs answer that were dead, when it is done to them a second time."""


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
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST)] = 100
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
    return await _act(request, "retry")


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
    return await _act(request, "replay")


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
    return await _act(request, "purge")


async def _act(request: Request[ReasonQuery, DeadChoice], verb: DeadVerb) -> Reply:
    """Do it to some dead letters, from the newest to the oldest, so that none is met twice."""
    service, body, reason = request.service, request.body, reason_of(request.query)
    which = _chosen(request)
    if which is None:
        nothing = shapes.DeadDone(
            dry_run=body.dry_run, done=0, ids=[], left=0, at_least=False, next=None
        )
        return Reply(200, nothing)
    listing = f"dead letters {which!r}"
    place = service.cursors.read(body.cursor, listing)
    engine = await service.client.engine()
    ids, done = list[str](), 0
    for _ in range(_LOOKS):
        size = min(_PAGE, engine.capabilities.max_batch, body.limit - len(ids))
        page = await service.client.repeatable(
            lambda size=size, place=place: engine.inspector.jobs(which, limit=size, cursor=place)
        )
        if page.jobs and not body.dry_run:
            if verb != "purge":
                await service.quotas.admit_jobs(request.principal, len(page.jobs))
            done += await _done(request, engine, verb, page.jobs, reason)
        ids += [record.job.id for record in page.jobs]
        place = page.cursor
        if place is None or len(ids) >= body.limit:
            break
    found = await service.client.repeatable(lambda: engine.inspector.dead_groups(which))
    shape = shapes.DeadDone(
        dry_run=body.dry_run,
        done=done,
        ids=ids,
        left=sum(group.count for group in found.groups),
        at_least=found.at_least,
        next=service.cursors.written(place, listing),
    )
    return Reply(200, shape)


def _described(body: DeadChoice, tenant: str) -> str:
    """Write down which dead letters of a tenant were meant; of others it is told nothing."""
    given = {name: getattr(body, name) for name in Choice.__struct_fields__}
    if body.tenant:
        given["tenant"] = [tenant]
    return msgspec.json.encode({name: value for name, value in given.items() if value}).decode()


def _chosen(request: Request[ReasonQuery, DeadChoice]) -> Filter | None:
    """Give the filter, and refuse to mean everything by mistake or two things at once."""
    body = request.body
    filtered = any(getattr(body, name) not in ([], None) for name in Choice.__struct_fields__)
    if filtered and body.all:
        raise InvalidOption(
            "both a filter and `all` were given", hint="give one of them", value="all"
        )
    if not (filtered or body.all):
        raise InvalidOption(
            "no dead letters are chosen",
            hint='give a filter, as in {"type": ["charge"]}, or {"all": true} to mean all of them',
        )
    return job_filter(body, request.principal, _DEAD)


async def _done(
    request: Request[ReasonQuery, DeadChoice],
    engine: Engine,
    verb: DeadVerb,
    records: Sequence[JobRecord],
    reason: str,
) -> int:
    """Do it to these, note it for each tenant, wake who may care, and tell to how many."""
    jobs = engine.jobs
    act = {"retry": jobs.retry, "replay": jobs.replay, "purge": jobs.purge}[verb]
    ids, by = [record.job.id for record in records], request.principal.name
    answers, again = await request.service.client.repeated(lambda: act(ids, by=by, reason=reason))
    good = {ChangeAnswer.DONE, *_FOUND_DONE[verb]} if again else {ChangeAnswer.DONE}
    done = {answer.id for answer in answers if answer.answer in good}
    counts = Counter(record.job.tenant for record in records if record.job.id in done)
    about = [
        About(_described(request.body, tenant), tenant, f"{count} done")
        for tenant, count in sorted(counts.items())
    ]
    await auditing.note(request, *about)
    if verb == "purge":
        await engine.wakeup.notify(FINISHED_TOPIC)
        return len(done)
    news: dict[str, Counter[str]] = {}
    for record in records:
        if record.job.id in done:
            news.setdefault(record.job.queue, Counter())[record.job.type] += 1
    for queue, types in news.items():
        await engine.wakeup.notify(queue_topic(queue), jobs=types)
    return len(done)
