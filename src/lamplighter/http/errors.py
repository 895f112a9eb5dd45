"""Refusals of the service, as the errors that the same mistake raises without it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from lamplighter.model.errors import LamplighterError, StoreUnreachable, every_error

T = TypeVar("T")


class ServiceUnreachable(StoreUnreachable):
    """The HTTP service cannot be reached, or did not answer in time."""

    code = "service-unreachable"


class ServiceRefused(LamplighterError):
    """The HTTP service has refused a request for a reason of its own."""

    code = "service-refused"
    status: int
    """The status of the answer."""
    problem: str
    """The code of the problem, such as `forbidden`; empty: the answer did not come from us."""

    def __init__(
        self, cause: str, *, hint: str, value: object = None, status: int = 0, problem: str = ""
    ) -> None:
        super().__init__(cause, hint=hint, value=value)
        self.status = status
        self.problem = problem


class _Problem(msgspec.Struct):
    """What of a problem matters here."""

    code: str
    detail: str
    hint: str = ""
    value: str | None = None


_known = {kind.code: kind for kind in every_error()}
_decoder = msgspec.json.Decoder(_Problem)


def decoded(decoder: msgspec.json.Decoder[T], status: int, body: bytes) -> T:
    """Read what the service said; what cannot be read was said by somebody else."""
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise foreign(status, body) from error


def foreign(status: int, body: bytes) -> ServiceRefused:
    """Make the error for an answer that does not come from the service."""
    said = body[:200].decode("utf-8", "replace")
    return ServiceRefused(
        f"the answer has status {status} and is none of the service: {said}",
        hint="check the address, and what stands between here and the service",
        value=status,
        status=status,
    )


def error_of(status: int, body: bytes) -> LamplighterError:
    """Make the error that an answer stands for."""
    try:
        problem = _decoder.decode(body)
    except msgspec.DecodeError:
        return foreign(status, body)
    kind = _known.get(problem.code)
    if kind is not None:
        return kind(problem.detail, hint=problem.hint, value=problem.value)
    return ServiceRefused(
        f"{problem.detail} (status {status}, {problem.code})",
        hint=problem.hint,
        value=problem.value,
        status=status,
        problem=problem.code,
    )
