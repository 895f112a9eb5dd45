"""Changes as they happen, in the shapes of the routes that show the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from lamplighter.model.errors import UnknownJob
from lamplighter.model.names import shown
from lamplighter.server.auth import Principal, Scope, check_scope, check_whole
from lamplighter.server.errors import Forbidden, InvalidQuery, NoMoreListeners, TooManyListeners
from lamplighter.server.events import Look, Topic
from lamplighter.server.gate import header
from lamplighter.server.route import EVENT_STREAM, Answer, Reply, Request, Route, route
from lamplighter.server.routes import dlq, job, overview, queues, schedules, workers
from lamplighter.server.service import HttpService, checked_id

MOST_TOPICS = 10

_JOB = "job"
_SHOWN_BY: Mapping[str, Route] = {
    "dlq": dlq.list_groups,
    _JOB: job.show,
    "overview": overview.show,
    "queues": queues.list_queues,
    "schedules": schedules.list_schedules,
    "workers": workers.list_workers,
}
"""Which route shows what a topic is about; its scope is asked for here too."""


class EventsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to listen to."""

    topic: Annotated[list[str], msgspec.Meta(extra_json_schema={"maxItems": MOST_TOPICS})] = (
        msgspec.field(default_factory=list[str])
    )
    """One or several of `overview`, `workers`, `queues`, `dlq`, `schedules` and `job:ID`."""


@route(
    "GET",
    "/v1/events",
    scope=Scope.JOBS_READ,
    summary="Listen to changes, as server-sent events.",
    query=EventsQuery,
    answers=[
        Answer(
            status=200,
            kind=str,
            media=EVENT_STREAM,
            text="What there is now, and then whatever changes: the name of an event is its topic, "
            "its data is what `GET` of the same answers. `problem` says why there is no more of a "
            "topic, `store` that the store does not answer (`away`) or answers again (`ok`). With "
            "the header `Last-Event-ID` nothing is sent that is there already.",
            example='retry: 2000\n\nevent: workers\nid: 5d41402abc4b2a76\ndata: {"workers":[]}\n\n',
        )
    ],
    errors=[InvalidQuery, UnknownJob, TooManyListeners, NoMoreListeners],
)
async def listen(request: Request[EventsQuery, None]) -> Reply:
    """Open the stream."""
    service, topics = request.service, _topics(request.query.topic, request.principal)

    async def check() -> None:
        asking = await service.door.principal(request.scope["headers"])
        check_scope(asking, Scope.JOBS_READ)
        if _topics(request.query.topic, asking) != topics:
            raise Forbidden(
                f"{shown(asking.name)} is for other tenants now than when this stream began",
                hint="listen anew",
                value=asking.tenant,
            )

    had = header(request.scope["headers"], b"last-event-id") or b""
    listener = await service.events.listen(
        request.principal.name,
        {topic: _look(service, topic) for topic in topics},
        had=had.decode("latin-1"),
        check=check,
    )
    return Reply(200, listener, {"X-Accel-Buffering": "no"}, media=EVENT_STREAM)


def _topics(names: list[str], principal: Principal) -> list[Topic]:
    """Check what somebody wants to listen to, and that they may."""
    if not 1 <= len(names) <= MOST_TOPICS:
        raise InvalidQuery(
            f"{len(names)} topics are asked for",
            hint=f"give `topic` once or several times, up to {MOST_TOPICS}",
            value=len(names),
        )
    return list(dict.fromkeys(_topic(name, principal) for name in names))


def _topic(name: str, principal: Principal) -> Topic:
    kind, colon, job_id = name.partition(":")
    shown_by = _SHOWN_BY.get(kind)
    if shown_by is None or bool(colon) != (kind == _JOB):
        known = ", ".join(sorted({*_SHOWN_BY, f"{_JOB}:ID"} - {_JOB}))
        raise InvalidQuery(f"there is no topic {shown(name)}", hint=f"known: {known}", value=name)
    check_scope(principal, shown_by.scope)
    if kind == _JOB:
        return Topic(name=f"{_JOB}:{checked_id(job_id)}", tenant=principal.tenant, steady=True)
    check_whole(principal)
    return Topic(name=name, tenant=None)


def _look(service: HttpService, topic: Topic) -> Look:
    kind, _, job_id = topic.name.partition(":")
    shown_by = _SHOWN_BY[kind]

    async def look() -> object:
        asked: Request[msgspec.Struct, None] = Request(
            service=service,
            principal=Principal(name="events", tenant=topic.tenant),
            query=shown_by.query(),
            body=None,
            path={"id": job_id},
        )
        return (await shown_by.handler(asked)).body

    return look
