"""Headers of every answer: the id of its request, what is left of a rate, and who may read it.

Pages of other origins may read answers only where the setting `http_cors` names them, and never
with a cookie: what they send has to carry a token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.responses import Response
from starlette.types import Scope

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.server.gate import header
from lamplighter.server.rate import Bucket

_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_KEPT = "lamplighter.request_id"
_ALLOWED = "authorization, content-type, idempotency-key, if-match, if-none-match, x-request-id"
_EXPOSED = (
    "etag, location, retry-after, x-request-id, ratelimit-limit, ratelimit-remaining, "
    "ratelimit-reset"
)


def request_id(scope: Scope) -> str:
    """Return the id of a request: the one it came with, if that can be one, or a new one."""
    found = scope.get(_KEPT)
    if found is None:
        given = header(scope["headers"], b"x-request-id")
        known = given is not None and _ID.fullmatch(given) is not None
        found = scope[_KEPT] = given.decode() if given is not None and known else runtime.nonce()
    return found


def origins_of(settings: Settings) -> frozenset[str]:
    """Return the origins whose pages may read answers."""
    return frozenset(filter(None, (each.strip() for each in settings.http_cors.split(","))))


def add(response: Response, scope: Scope, settings: Settings, origins: frozenset[str]) -> None:
    """Add what every answer says."""
    headers = response.raw_headers
    headers.append((b"x-request-id", request_id(scope).encode()))
    bucket: Bucket | None = scope.get("lamplighter.rate")
    if bucket is not None:
        left = max(0, int(bucket.level))
        reset = (settings.http_burst - bucket.level) / settings.http_rate
        headers += (
            (b"ratelimit-limit", b"%d" % settings.http_burst),
            (b"ratelimit-remaining", b"%d" % left),
            (b"ratelimit-reset", b"%d" % max(0, round(reset))),
        )
    if origins:
        headers += _shared(scope, origins)


def _shared(scope: Scope, origins: frozenset[str]) -> list[tuple[bytes, bytes]]:
    origin = (header(scope["headers"], b"origin") or b"").decode("latin-1")
    found = [(b"vary", b"Origin")]
    if origin in origins:
        found += [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED.encode()),
        ]
    return found


def preflight(scope: Scope, origins: frozenset[str], methods: Sequence[str]) -> Response | None:
    """Answer a browser that asks whether a page may send a request; None: it asks nothing."""
    if header(scope["headers"], b"access-control-request-method") is None:
        return None
    response = Response(status_code=204)
    response.raw_headers += _shared(scope, origins)
    if len(response.raw_headers) > 2:
        response.raw_headers += (
            (b"access-control-allow-methods", ", ".join(methods).encode()),
            (b"access-control-allow-headers", _ALLOWED.encode()),
            (b"access-control-max-age", b"600"),
        )
    response.raw_headers.append((b"x-request-id", request_id(scope).encode()))
    return response
