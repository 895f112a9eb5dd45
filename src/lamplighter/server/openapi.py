"""The OpenAPI 3.1 document, written from the declarations of the routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from importlib import metadata
from typing import Any, cast

import msgspec

from lamplighter.config import Settings
from lamplighter.model.errors import InvalidOption, LamplighterError, StoreError
from lamplighter.model.ids import ID_LENGTH
from lamplighter.model.names import KEY_LIMIT, NAME_LIMIT
from lamplighter.server import errors, field_notes, problem, schema_limits
from lamplighter.server.problem import Problem, problem_of
from lamplighter.server.route import JSON, NDJSON, Answer, Body, Nothing, Route, Table, by_status

Document = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_HEADERS = {
    "X-Request-Id": "The id of the request: the one that it came with, or one that was drawn.",
    "RateLimit-Limit": "Requests that may be made at once, where `http_rate` sets a limit.",
    "RateLimit-Remaining": "How many of them are left.",
    "RateLimit-Reset": "Seconds until all of them are there again.",
    "Retry-After": "Seconds after which to try again.",
}
"""Headers that many answers have, and what they say."""
_RATES = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""Refusals that say when to try again."""
_USUAL = Settings()
"""Limits that are settings are told as they are by default."""
_PATHS = {
    "/v1/jobs/": ID_LENGTH,
    "/v1/schedules/": KEY_LIMIT,
    "/v1/queues/": NAME_LIMIT,
    "/v1/tenants/": NAME_LIMIT,
}
"""Characters of what stands in a path, by the path before it."""


def common_errors(route: Route) -> list[type[LamplighterError]]:
    """Return the errors that a route may answer because of what it is, without declaring them."""
    found: list[type[LamplighterError]] = [
        errors.InvalidQuery,
        errors.UrlTooLong,
        errors.WrongHost,
        errors.HeadersTooLarge,
        errors.Unexpected,
        errors.RateLimited,
        errors.Overdue,
        StoreError,
    ]
    if route.matches:
        found.append(errors.PreconditionFailed)
    if route.changes:
        found.append(errors.UnknownPrecondition)
    if route.asks:
        found += [errors.MissingToken, errors.InvalidToken, errors.TokenExpired]
        found.append(errors.SessionOver)
        found.append(errors.Forbidden)
    if not route.keyed and route.changes:
        found.append(InvalidOption)  # for the header Idempotency-Key
    if route.body is not None:
        found += [
            errors.MalformedBody,
            errors.SlowRequest,
            errors.BodyTooLarge,
            errors.LimitExceeded,
            errors.WrongMediaType,
            errors.InvalidBody,
        ]
    return found


def errors_of(route: Route) -> list[type[LamplighterError]]:
    """Return all errors that a route may answer, each once."""
    return list(dict.fromkeys([*route.errors, *common_errors(route)]))


@lru_cache(maxsize=2)
def document(table: Table) -> Document:
    """Describe all routes; made once for all services of a process, so read it only."""
    kinds = [answer.kind for route in table for answer in route.answers]
    kinds += [route.body.kind for route in table if route.body is not None]
    kinds += [route.query for route in table]
    schemas, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REFERENCE)
    field_notes.describe(components)
    schema_limits.complete(components, field_notes.structs())
    queries = {route.query.__name__ for route in table}
    known = dict(zip(map(repr, [*kinds, Problem]), schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lamplighter",
            "version": metadata.version("lamplighter"),
            "summary": "A distributed job scheduler: every lamp lit, on time, once.",
            "description": "Operations that do not list the header `Idempotency-Key` and change "
            "something refuse it: it would have no effect. Limits that are settings of the service "
            "are given as they are by default.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            path: {
                method.lower(): _operation(route, known, components)
                for method, route in methods.items()
            }
            for path, methods in table.paths.items()
        },
        "components": {
            "schemas": {name: each for name, each in components.items() if name not in queries},
            "headers": _described(_HEADERS),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    route: Route, known: dict[str, Document], components: dict[str, Document]
) -> Document:
    found: Document = {
        "operationId": route.name,
        "summary": route.summary,
        "responses": _responses(route, known),
    }
    if parameters := [*_path(route), *_query(route, components), *_headers(route)]:
        found["parameters"] = parameters
    if route.body is not None:
        found["requestBody"] = _body(route.body, known)
    if route.asks:
        # Where the service was started without authentication, no token is asked for.
        found["security"] = [{"key": []}, {}]
    if route.scope is not None:
        found["x-scope"] = route.scope.value
    return found


def _path(route: Route) -> Iterable[Document]:
    for name in _PARAMETER.findall(route.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": "Percent-encoded: `/` inside it is written as %2F.",
            "schema": {
                "type": "string",
                "maxLength": _PATHS.get(route.path.partition("{")[0], _USUAL.http_url_bytes),
            },
        }


def _query(route: Route, components: dict[str, Document]) -> Iterable[Document]:
    if route.query is Nothing:
        return
    described = components[route.query.__name__]["properties"]
    for field in msgspec.structs.fields(route.query):
        schema = dict(described[field.encode_name])
        schema_limits.bound_parameter(field.encode_name, schema)
        about = {"description": schema.pop("description")} if "description" in schema else {}
        named = {"name": field.encode_name, "in": "query", "required": False}
        yield {**named, **about, "schema": schema}


def _headers(route: Route) -> Iterable[Document]:
    if route.matches:
        yield {
            "name": "If-Match",
            "in": "header",
            "required": False,
            "description": "The `ETag` that was read: if it is another by now, nothing is changed "
            "and the answer is 412. Where it is not listed it is refused.",
            "schema": {"type": "string", "maxLength": _USUAL.http_header_bytes},
        }
    if route.keyed:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "The caller's own name for this request: the same again is done "
            "once. In UTF-8, and sent once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": KEY_LIMIT},
        }


def _body(body: Body, known: dict[str, Document]) -> Document:
    item = known[repr(body.kind)]
    if not body.many:
        return {"required": True, "content": {JSON: {"schema": item, "example": body.example}}}
    items, most = cast("list[object]", body.example), _USUAL.http_batch_jobs
    lines = "\n".join(msgspec.json.encode(each).decode() for each in items) + "\n"
    return {
        "required": True,
        "content": {
            JSON: {"schema": {"type": "array", "items": item, "maxItems": most}, "example": items},
            NDJSON: {
                "schema": {
                    "type": "string",
                    "description": "One JSON document per line.",
                    "maxLength": _USUAL.http_batch_bytes,
                },
                "example": lines,
            },
        },
    }


def _responses(route: Route, known: dict[str, Document]) -> Document:
    found: Document = {}
    for answer in route.answers:
        found[str(answer.status)] = {
            "description": answer.text,
            "content": _content(answer, known),
            "headers": {**_described(answer.headers), **_common_headers(route, answer.status)},
        }
    for status, kinds in by_status(errors_of(route)).items():
        refusal = _refusal(status, kinds, known[repr(Problem)])
        found[str(status)] = {**refusal, "headers": _common_headers(route, status)}
    return found


def _described(headers: Mapping[str, str]) -> Document:
    return {
        name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()
    }


def _common_headers(route: Route, status: int) -> Document:
    """Refer to the headers that an answer has because of its route and its status."""
    names = ["X-Request-Id"]
    if route.asks or status == HTTPStatus.TOO_MANY_REQUESTS:
        names += _RATES
    if status in _LATER:
        names.append("Retry-After")
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _content(answer: Answer, known: dict[str, Document]) -> Document:
    if answer.media is None:
        return {}
    media = answer.media.partition(";")[0]
    return {media: {"schema": known[repr(answer.kind)], "example": answer.example}}


def _refusal(status: int, kinds: list[type[LamplighterError]], schema: Document) -> Document:
    codes = sorted({kind.code for kind in kinds})
    described = "; ".join(f"`{kind.code}`: {_sentence(kind)}" for kind in kinds)
    return {
        "description": f"{HTTPStatus(status).phrase}. {described}",
        "content": {
            problem.MEDIA_TYPE: {
                "schema": schema,
                "examples": {code: {"value": _example(kinds, code)} for code in codes},
            }
        },
    }


def _example(kinds: list[type[LamplighterError]], code: str) -> Document:
    kind = next(kind for kind in kinds if kind.code == code)
    made = kind(_sentence(kind), hint="what to do about it stands here")
    return cast("Document", msgspec.to_builtins(problem_of(made)))


def _sentence(kind: type[LamplighterError]) -> str:
    return (inspect.getdoc(kind) or kind.code).partition("\n")[0]
