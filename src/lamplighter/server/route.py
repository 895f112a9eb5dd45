"""One declaration per route: what it takes, what it answers, and who may call it.

Nothing else describes a route. `application` serves what is declared, `openapi` writes it down.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
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


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """A query without parameters, or no body."""


Q = TypeVar("Q", bound=msgspec.Struct)
B = TypeVar("B")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[Q, B]):
    """A request that has passed every check its route declares."""

    service: HttpService
    principal: Principal
    query: Q
    body: B
    path: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str | None = None
    """The header `Idempotency-Key`, where the route takes it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a route answers: one of its declared statuses, with what is declared for it."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


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
    """None: whoever reaches the service may call it."""
    summary: str
    handler: Handler
    answers: tuple[Answer, ...]
    errors: tuple[type[LamplighterError], ...] = ()
    """Errors of its own; those that every route may answer are not repeated."""
    query: type[msgspec.Struct] = Nothing
    body: Body | None = None
    keyed: bool = False
    """It takes the header `Idempotency-Key`."""

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
