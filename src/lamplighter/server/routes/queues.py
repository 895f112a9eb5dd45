"""Queues: how much waits in them, for how long, and how they are served."""

from __future__ import annotations

import msgspec

from lamplighter.client import queue_in_use, wake_workers
from lamplighter.model.errors import InvalidName, InvalidOption, InvalidTime, WrongState
from lamplighter.model.lifecycle import milliseconds
from lamplighter.model.names import check_name, shown
from lamplighter.options import positive_seconds
from lamplighter.port.access import About
from lamplighter.port.store import queue_topic
from lamplighter.port.values import ChangeAnswer, QueueInfo, QueueSettings
from lamplighter.server import auditing, shapes
from lamplighter.server.auth import Scope
from lamplighter.server.errors import InvalidQuery, UnknownName
from lamplighter.server.route import Answer, Body, Nothing, Reply, Request, route
from lamplighter.server.routes import examples
from lamplighter.server.routes.notes import ReasonQuery, reason_of
from lamplighter.server.service import HttpService

_QUEUE = Answer(status=200, kind=shapes.Queue, text="The queue.", example=examples.QUEUE)


@route(
    "GET",
    "/v1/queues",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="List the queues.",
    answers=[
        Answer(
            status=200,
            kind=shapes.Queues,
            text="All queues by name.",
            example={"queues": [examples.QUEUE]},
        )
    ],
)
async def list_queues(request: Request[Nothing, None]) -> Reply:
    """Read the queues."""
    found = await _queues(request.service)
    queues = [shapes.queue(each, request.principal) for each in found]
    return Reply(200, shapes.Queues(queues=queues))


@route(
    "GET",
    "/v1/queues/{name}",
    scope=Scope.OPERATOR_READ,
    whole=True,
    summary="Look at a queue.",
    answers=[_QUEUE],
    errors=[UnknownName],
)
async def show(request: Request[Nothing, None]) -> Reply:
    """Read one of the queues."""
    found = await _queue(request.service, request.path["name"])
    return Reply(200, shapes.queue(found, request.principal))


class QueueChange(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is set on a queue; what is left out stays."""

    max_wait_seconds: float | None = None
    """How long a job may be due before it goes first, whatever its priority."""
    held: bool | None = None
    """Whether its jobs are kept from running."""


@route(
    "PUT",
    "/v1/queues/{name}",
    scope=Scope.OPERATOR,
    whole=True,
    summary="Set a queue's longest wait, hold it, or let it go on.",
    query=ReasonQuery,
    body=Body(kind=QueueChange, example={"max_wait_seconds": 30, "held": False}),
    answers=[_QUEUE],
    errors=[UnknownName, InvalidQuery, InvalidName, InvalidOption, InvalidTime],
)
async def put(request: Request[ReasonQuery, QueueChange]) -> Reply:
    """Set what is given."""
    service, body, reason = request.service, request.body, reason_of(request.query)
    name = check_name("queue", request.path["name"])
    wait = body.max_wait_seconds
    if wait is None and body.held is None:
        raise InvalidOption("nothing is set", hint="give `max_wait_seconds` or `held`")
    wait_ms = None if wait is None else milliseconds(positive_seconds("max_wait_seconds", wait))
    settings = QueueSettings(max_wait_ms=wait_ms, held=body.held)
    engine = await service.client.engine()
    by = request.principal.name
    await service.client.repeatable(
        lambda: engine.settings.put_queue(name, settings, by=by, reason=reason)
    )
    service.queues.learn(name)
    await auditing.note(request, About(name))
    await engine.wakeup.notify(queue_topic(name))
    return Reply(200, shapes.queue(await _queue(service, name), request.principal))


@route(
    "DELETE",
    "/v1/queues/{name}",
    scope=Scope.OPERATOR,
    whole=True,
    summary="Remove an empty queue that nobody serves, with its settings.",
    query=ReasonQuery,
    answers=[
        Answer(
            status=200,
            kind=shapes.RemovedQueue,
            text="It is listed no more, and its name is free again.",
            example={"name": "payments", "answer": "done"},
        )
    ],
    errors=[UnknownName, WrongState, InvalidQuery],
)
async def remove(request: Request[ReasonQuery, None]) -> Reply:
    """Remove the queue."""
    service, name, reason = request.service, request.path["name"], reason_of(request.query)
    engine, by = await service.client.engine(), request.principal.name
    answer = await service.client.repeatable(
        lambda: engine.settings.remove_queue(name, by=by, reason=reason)
    )
    if answer is ChangeAnswer.UNKNOWN:
        raise unknown_name("queue", name)
    if answer is ChangeAnswer.CONFLICT:
        raise queue_in_use(name)
    service.queues.forget(name)
    await auditing.note(request, About(name, answer=answer.value))
    return Reply(200, shapes.RemovedQueue(name=name, answer=answer.value))


async def wake(service: HttpService) -> None:
    """Wake all workers, because something that kept jobs from running may have changed."""
    await wake_workers(await service.client.engine())


def unknown_name(what: str, name: str) -> UnknownName:
    """Make the error for a name that leads nowhere."""
    return UnknownName(
        f"no {what} {shown(name)} has jobs or settings",
        hint=f"GET /v1/{what}s lists all that have",
        value=name,
    )


async def _queue(service: HttpService, name: str) -> QueueInfo:
    inspector = await service.inspector()
    found = await service.client.repeatable(lambda: inspector.queue(name))
    if found is None:
        raise unknown_name("queue", name)
    return found


async def _queues(service: HttpService) -> list[QueueInfo]:
    inspector = await service.inspector()
    return await service.client.repeatable(inspector.queues)
