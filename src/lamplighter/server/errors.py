"""What only a service over HTTP can say, and the status that goes with each error."""

from __future__ import annotations

from typing import ClassVar

from lamplighter.model import errors
from lamplighter.model.errors import LamplighterError


class HttpError(LamplighterError):
    """A request that is refused before it has reached the scheduler."""

    code = "http-error"
    status: ClassVar[int] = 400
    headers: dict[str, str]

    def __init__(
        self,
        cause: str,
        *,
        hint: str,
        value: object = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(cause, hint=hint, value=value)
        self.headers = headers or {}


class MalformedBody(HttpError):
    """The body is not JSON."""

    code = "malformed-body"


class MalformedRequest(HttpError):
    """What was sent is not HTTP/1.1, or too much of it came ahead."""

    code = "malformed-request"


class InvalidQuery(HttpError):
    """A query parameter is unknown or cannot be used."""

    code = "invalid-query"


class InvalidCursor(HttpError):
    """The cursor was not made here, or for another listing."""

    code = "invalid-cursor"


class MissingToken(HttpError):
    """The request carries no bearer token."""

    code = "missing-token"
    status = 401


class InvalidToken(HttpError):
    """The bearer token is none of ours, is forged, or was revoked."""

    code = "invalid-token"
    status = 401


class TokenExpired(HttpError):
    """The bearer token was good once; its time is over."""

    code = "token-expired"
    status = 401


class SessionOver(HttpError):
    """The session of the browser has ended."""

    code = "session-over"
    status = 401


class Forbidden(HttpError):
    """Whoever asks may not do this."""

    code = "forbidden"
    status = 403


class UnknownPath(HttpError):
    """Nothing is declared at this path."""

    code = "unknown-path"
    status = 404


class UnknownName(HttpError):
    """No queue or tenant of this name has jobs or settings."""

    code = "unknown-name"
    status = 404


class WrongMethod(HttpError):
    """The path is declared, but not with this method."""

    code = "wrong-method"
    status = 405


class SignedIn(HttpError):
    """The browser has a session of somebody else."""

    code = "signed-in"
    status = 409


class PreconditionFailed(HttpError):
    """The header `If-Match` names another version than there is."""

    code = "precondition-failed"
    status = 412


class UnknownPrecondition(HttpError):
    """A precondition was sent that this route does not check, such as `If-Match`."""

    code = "unknown-precondition"
    status = 400


class SlowRequest(HttpError):
    """The body did not arrive in time."""

    code = "slow-request"
    status = 408


class BodyTooLarge(HttpError):
    """The body has more bytes than are taken."""

    code = "body-too-large"
    status = 413


class LimitExceeded(HttpError):
    """The JSON in the body is deeper or larger than is taken."""

    code = "limit-exceeded"
    status = 413


class UrlTooLong(HttpError):
    """Path and query are longer than is taken."""

    code = "url-too-long"
    status = 414


class WrongMediaType(HttpError):
    """The body is of a kind that this route does not read."""

    code = "wrong-media-type"
    status = 415


class WrongHost(HttpError):
    """The request was meant for another host."""

    code = "wrong-host"
    status = 421


class InvalidBody(HttpError):
    """The body is JSON, but not what this route takes."""

    code = "invalid-body"
    status = 422


class TooFrequent(HttpError):
    """The schedule would fire more often than those of a tenant may."""

    code = "too-frequent"
    status = 422


class TooManyQueues(HttpError):
    """The store has as many queues as callers may make, and this is none of them."""

    code = "too-many-queues"
    status = 422


class HeadersTooLarge(HttpError):
    """The headers are larger than is taken."""

    code = "headers-too-large"
    status = 431


class RateLimited(HttpError):
    """Whoever asks has sent more requests than they may."""

    code = "rate-limited"
    status = 429


class TenantFull(HttpError):
    """The tenant has as many waiting jobs, or schedules, as it may have."""

    code = "tenant-full"
    status = 429


class TooManyListeners(HttpError):
    """Whoever asks listens to changes on too many connections already."""

    code = "too-many-listeners"
    status = 429


class Unexpected(HttpError):
    """Something went wrong in the service itself."""

    code = "unexpected"
    status = 500


class Overdue(HttpError):
    """The request could not be answered in time; whether it took effect is not known."""

    code = "overdue"
    status = 503


class TooBusy(HttpError):
    """The service has as many connections as it may have, and all are in use."""

    code = "too-busy"
    status = 503


class NoMoreListeners(HttpError):
    """The service has as many listeners as it takes."""

    code = "no-more-listeners"
    status = 503


class NotReady(HttpError):
    """The store cannot be reached at present."""

    code = "not-ready"
    status = 503


_STATUSES: tuple[tuple[type[LamplighterError], int], ...] = (
    (errors.PayloadTooLarge, 413),
    (errors.InvalidInput, 422),
    (errors.UnknownType, 422),
    (errors.KeyConflict, 409),
    (errors.WrongState, 409),
    (errors.UnknownJob, 404),
    (errors.UnknownSchedule, 404),
    (errors.StoreError, 503),
)
"""The first class that fits gives the status."""


def status_of(error: type[LamplighterError]) -> int:
    """Return the status with which an error is answered."""
    if issubclass(error, HttpError):
        return error.status
    return next((status for kind, status in _STATUSES if issubclass(error, kind)), 500)
