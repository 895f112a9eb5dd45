"""One declaration per route: what it takes, what it answers, and who may call it.

Nothing else describes a route. `application` serves what is declared, `openapi` writes it down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from lamplighter.model.errors import LamplighterError
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.errors import status_of

if TYPE_CHECKING:
    from lamplighter.server.service import HttpService

JSON = "application/json"
NDJSON = "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
CSS = "text/css; charset=utf-8"
EVENT_STREAM = "text/event-stream"

_READING = frozenset({Scope.JOBS_READ, Scope.SCHEDULES_READ})


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """A query without parameters, or no body."""


Q = TypeVar("Q", bound=msgspec.Struct)
B = TypeVar("B")


# These two are not frozen: they are made for each request, and so are made quicker.


@dataclass(slots=True, kw_only=True)
class Request(Generic[Q, B]):
    """A request that has passed every check its route declares."""

    service: HttpService
    principal: Principal
    query: Q
    body: B
    path: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = None
    """The header `Idempotency-Key`, where the route takes it."""
    action: str = ""
    """Name of the route, under which changes are noted."""
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The request as the server has passed it on, for the few routes that look at its headers."""


@dataclass(slots=True)
class Reply:
    """What a route answers: one of its declared statuses, with what is declared for it."""

    status: int
    body: object
    """Becomes JSON; in any other media type bytes as they are, or a stream of them."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media: str = JSON


class Stream(ABC):
    """A body that is sent while it is made."""

    @abstractmethod
    def chunks(self) -> AsyncIterator[bytes]:
        """Make it, piece by piece."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what it needs: it has come to its end, or nobody reads it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that a route may give."""

    status: int
    kind: Any
    """Type of the body."""
    text: str
    example: object
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers that come with it, and what they say."""
    media: str | None = JSON
    """Media type of the body; a part behind `;` is left out of the description. None: no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a route takes as its body."""

    kind: Any
    """Type of the body; of one item if there are many."""
    example: object
    many: bool = False
    """A list of items, as JSON or with one item per line."""


Handler = Callable[[Request[Any, Any]], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A declared route."""

    method: str
    path: str
    scope: Scope | None
    """None: whoever reaches the service may call it, unless it asks who they are."""
    summary: str
    handler: Handler
    answers: tuple[Answer, ...]
    errors: tuple[type[LamplighterError], ...] = ()
    """Errors of its own; those that every route may answer are not repeated."""
    query: type[msgspec.Struct] = Nothing
    body: Body | None = None
    keyed: bool = False
    """It takes the header `Idempotency-Key`."""
    known: bool = False
    """Without a scope: it asks who is calling nevertheless."""
    whole: bool = False
    """It is about all tenants: whoever has one of their own is refused."""
    matches: bool = False
    """It heeds the header `If-Match`."""

    @property
    def asks(self) -> bool:
        """Whether it asks who is calling."""
        return self.scope is not None or self.known

    @property
    def changes(self) -> bool:
        """Whether it may change something, and not only look."""
        return self.method != "GET" and self.scope not in _READING

    @property
    def name(self) -> str:
        """Name of the operation."""
        module = self.handler.__module__.rpartition(".")[2]
        return f"{module}.{self.handler.__name__}"

    @property
    def statuses(self) -> frozenset[int]:
        """Statuses with which it may answer when all is well."""
        return frozenset(answer.status for answer in self.answers)


def route(
    method: str,
    path: str,
    *,
    scope: Scope | None,
    summary: str,
    answers: Iterable[Answer],
    errors: Iterable[type[LamplighterError]] = (),
    query: type[msgspec.Struct] = Nothing,
    body: Body | None = None,
    keyed: bool = False,
    known: bool = False,
    whole: bool = False,
    matches: bool = False,
) -> Callable[[Handler], Route]:
    """Declare a route; stands above the function that serves it."""

    def declare(handler: Handler) -> Route:
        return Route(
            method=method,
            path=path,
            scope=scope,
            summary=summary,
            handler=handler,
            answers=tuple(answers),
            errors=tuple(errors),
            query=query,
            body=body,
            keyed=keyed,
            known=known,
            whole=whole,
            matches=matches,
        )

    return declare


class Table:
    """All routes there are, by path and method."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.paths: dict[str, dict[str, Route]] = {}
        for each in routes:
            methods = self.paths.setdefault(each.path, {})
            if each.method in methods:
                raise ValueError(f"{each.method} {each.path} is declared twice")
            methods[each.method] = each

    def __iter__(self) -> Iterator[Route]:
        for methods in self.paths.values():
            yield from methods.values()


def by_status(errors: Iterable[type[LamplighterError]]) -> dict[int, list[type[LamplighterError]]]:
    """Group errors by the status with which they are answered."""
    found: dict[int, list[type[LamplighterError]]] = {}
    for error in errors:
        found.setdefault(status_of(error), []).append(error)
    return dict(sorted(found.items()))
