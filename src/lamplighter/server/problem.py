"""Errors as they are answered: application/problem+json, with our codes, causes and remedies."""

from __future__ import annotations

import http

import msgspec

from lamplighter.model.errors import LamplighterError, StoreError, StoreFull
from lamplighter.server.errors import HttpError, status_of

MEDIA_TYPE = "application/problem+json"

_LONGEST_VALUE = 200
_PAUSE = 1.0
"""Seconds after which to ask a store again that could not answer."""
_encoder = msgspec.json.Encoder()


class Problem(msgspec.Struct, kw_only=True, frozen=True):
    """What is wrong, why, and what to do about it."""

    type: str
    """Names the kind of problem, as a URN that ends in the code."""
    title: str
    status: int
    code: str
    """Stable name of the problem, for programs."""
    detail: str
    """What is wrong, and why."""
    hint: str
    """What to do about it."""
    value: str | None = None
    """The value that cannot be used, shortened."""


def problem_of(error: LamplighterError) -> Problem:
    """Describe an error. What the store says of itself stays in the service's log."""
    status = status_of(type(error))
    detail, hint, value = error.cause, error.hint, error.value
    if isinstance(error, StoreError):
        detail = "the store cannot do this at the moment"
        hint = "try again after the time that Retry-After names; the service's log says more"
        value = None
    return Problem(
        type=f"urn:lamplighter:error:{error.code}",
        title=http.HTTPStatus(status).phrase,
        status=status,
        code=error.code,
        detail=detail,
        hint=hint,
        value=None if value is None else _short(value),
    )


def headers_of(error: LamplighterError) -> dict[str, str]:
    """Return the headers that go with an error."""
    if isinstance(error, HttpError):
        return error.headers
    if isinstance(error, StoreError):
        named = error.retry_after if isinstance(error, StoreFull) else None
        return {"Retry-After": f"{max(1, round(_PAUSE if named is None else named))}"}
    return {}


def _written(value: object) -> str:
    """Write a value as JSON, as it came; what JSON cannot write, as Python does."""
    try:
        return _encoder.encode(value).decode().strip('"')
    except (TypeError, ValueError):
        return repr(value)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else _written(value)
    # Half of a surrogate pair cannot be written; a control character may mislead a terminal.
    clean = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[:_LONGEST_VALUE])
    return f"{clean}…" if len(text) > _LONGEST_VALUE else clean
