"""What a request says, read as its route declares it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, cast, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope

from lamplighter.config import Settings
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server import gate
from lamplighter.server.deadlines import Deadlines
from lamplighter.server.errors import (
    InvalidQuery,
    MalformedBody,
    UnknownPrecondition,
    WrongMediaType,
)
from lamplighter.server.misfits import misfit
from lamplighter.server.route import JSON, NDJSON, Body

MOST_PARAMETERS = 100

_KEY = b"idempotency-key"
_PRECONDITIONS = ("If-Match", "If-None-Match", "If-Unmodified-Since")

Headers = Iterable[tuple[bytes, bytes]]


class QueryReader:
    """Reads the parameters of a query into their struct."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        hints = get_type_hints(kind)
        self._kind = kind
        self._lists = {name for name, hint in hints.items() if get_origin(hint) is list}
        self._instants = {name for name, hint in hints.items() if datetime in get_args(hint)}
        self._names = set(hints)
        self._usual = _without_parameters(kind)

    def read(self, text: bytes) -> msgspec.Struct:
        """Read the query, or say which parameter cannot be used."""
        if not text and self._usual is not None:
            return self._usual
        values: dict[str, Any] = {}
        for name, value in self._pairs(text):
            if name not in self._names:
                known = ", ".join(sorted(self._names)) or "none"
                raise InvalidQuery(
                    f"unknown parameter {shown(name)}", hint=f"known: {known}", value=name
                )
            if name in self._lists:
                values.setdefault(name, []).append(value)
            elif name in values:
                raise InvalidQuery(
                    f"the parameter {shown(name)} is given twice", hint="give it once", value=name
                )
            else:
                values[name] = value
        self._check_instants(values)
        try:
            return msgspec.convert(values, self._kind, strict=False)
        except msgspec.ValidationError as error:
            text_of = str(error).replace("$.", "")
            raise InvalidQuery(
                f"the query does not fit: {text_of}",
                hint="GET /v1/openapi.json says what each parameter takes",
                value=text.decode("latin-1"),
            ) from None

    def _check_instants(self, values: dict[str, Any]) -> None:
        """Refuse numbers, which would be read as seconds since 1970."""
        for name in self._instants & values.keys():
            if ":" not in values[name]:
                raise InvalidQuery(
                    f"the query does not fit: {shown(values[name])} is no instant, at `{name}`",
                    hint="write it as in 2030-01-31T12:00:00Z",
                    value=values[name],
                )

    @staticmethod
    def _pairs(text: bytes) -> list[tuple[str, str]]:
        try:
            return parse_qsl(
                text.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=bool(text),
                errors="strict",
                max_num_fields=MOST_PARAMETERS,
            )
        except ValueError as error:
            raise InvalidQuery(
                f"the query cannot be read: {error}",
                hint=f"write name=value&name=value, at most {MOST_PARAMETERS} of them, in UTF-8 "
                "with %XX for what is not plain",
                value=text.decode("latin-1"),
            ) from None


def _without_parameters(kind: type[msgspec.Struct]) -> msgspec.Struct | None:
    """Make what an empty query means; None where something has to be given."""
    try:
        return msgspec.convert({}, kind)
    except msgspec.ValidationError:
        return None


class BodyReader:
    """Reads bodies of one kind."""

    def __init__(self, body: Body, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._many = body.many
        self._one = msgspec.json.Decoder(list[body.kind] if body.many else body.kind)
        self._lines = msgspec.json.Decoder(body.kind)

    async def read(self, scope: Scope, receive: Receive, settings: Settings) -> Any:
        """Read the body, or say what is wrong with it."""
        headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
        media = self._media(headers)
        limit = settings.http_batch_bytes if self._many else settings.http_body_bytes
        declared = gate.header(headers, b"content-length")
        body = await gate.read_body(receive, declared, limit, self._deadlines)
        await gate.check_json(body, settings, items=self._many)
        try:
            return _made(self._lines.decode_lines if media == NDJSON else self._one.decode, body)
        except msgspec.ValidationError as error:
            raise misfit(error, body, lines=media == NDJSON) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedBody(
                f"the body is not JSON: {error}", hint="send JSON in UTF-8"
            ) from None

    def _media(self, headers: Headers) -> str:
        sent = gate.header(headers, b"content-type") or b""
        encoded = gate.header(headers, b"content-encoding")
        if sent == b"application/json" and encoded is None:
            return JSON
        given = sent.decode("latin-1")
        media = given.partition(";")[0].strip().lower()
        taken = (JSON, NDJSON) if self._many else (JSON,)
        if media not in taken:
            raise WrongMediaType(
                f"the body is of type {shown(given)}",
                hint=f"send Content-Type: {' or '.join(taken)}",
                value=given,
            )
        encoding = (encoded or b"").decode("latin-1")
        if encoding.strip().lower() not in {"", "identity"}:
            raise WrongMediaType(
                f"the body is encoded as {shown(encoding)}",
                hint="send it as it is, without Content-Encoding",
                value=encoding,
            )
        return media


def _made(decode: Callable[[bytes], Any], body: bytes) -> Any:
    """Make of a body what it says, without looking for garbage meanwhile.

    There are no cycles in what is made, and to look for them again and again takes twenty times
    as long as to make it, if it is much: others wait for that.
    """
    if not gc.isenabled():
        return decode(body)
    gc.disable()
    try:
        return decode(body)
    finally:
        gc.enable()


def read_key(headers: Headers) -> str | None:
    """Read the header Idempotency-Key, exactly as it was sent: no two keys become one."""
    given = [value for name, value in headers if name == _KEY]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidOption(
            f"the header Idempotency-Key comes {len(given)} times",
            hint="send it once",
            value=len(given),
        )
    try:
        return given[0].decode("utf-8")
    except UnicodeDecodeError:
        sent = given[0].decode("latin-1")
        raise InvalidOption(
            f"the header Idempotency-Key is {shown(sent)}, which is not written in UTF-8",
            hint="write it in UTF-8 or plain ASCII, or give `idempotency_key` in the body",
            value=sent,
        ) from None


def if_match(headers: Headers) -> frozenset[str] | None:
    """Return what the header If-Match names; None: there is none, or any version will do."""
    given = [value.decode("latin-1") for name, value in headers if name == b"if-match"]
    tags = frozenset(tag.strip() for value in given for tag in value.split(","))
    return None if not given or "*" in tags else tags


def refuse_preconditions(headers: Headers, *, matches: bool) -> None:
    """Refuse preconditions that nobody checks, and that would be relied on.

    With ``matches`` the route heeds If-Match.
    """
    for name in _PRECONDITIONS:
        given = gate.header(headers, name.lower().encode())
        if given is not None and not (matches and name == "If-Match"):
            raise UnknownPrecondition(
                f"this route does not take the header {name}",
                hint="leave it out; only PATCH /v1/schedules/{id} compares versions, with If-Match",
                value=given.decode("latin-1"),
            )


def refuse_key(headers: Headers, *, many: bool) -> None:
    """Refuse the header Idempotency-Key where it has no effect, and would be relied on."""
    given = gate.header(headers, _KEY)
    if given is not None:
        raise InvalidOption(
            "this route does not take the header Idempotency-Key",
            hint="give `idempotency_key` in each job of the batch instead"
            if many
            else "leave it out; only POST /v1/jobs and POST /v1/schedules/{id}/trigger take it",
            value=given.decode("latin-1"),
        )
