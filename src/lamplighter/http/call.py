"""One job, checked and written as the service takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec

from lamplighter import options as option
from lamplighter import payload, runtime
from lamplighter.job import Job
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import check_name
from lamplighter.model.retry import Retry
from lamplighter.registry import JobType

R_co = TypeVar("R_co", covariant=True)

_RETRY = ("max_attempts", "delays", "fixed", "base", "factor", "cap", "jitter", "no_retry_on")


class HttpCall(Generic[R_co]):
    """One job, ready to be submitted. Submitting it again stores nothing twice, by its key."""

    __slots__ = ("body", "drawn", "key", "kind", "type")

    def __init__(
        self,
        type: str | Job[..., R_co],
        arguments: Mapping[str, object],
        options: Mapping[str, object],
    ) -> None:
        payload.check_by_name(type, arguments)
        self.kind: JobType | None = None
        if isinstance(type, Job):
            self.kind, self.type = type.type, type.name
            args = self.kind.bind((), arguments)
        else:
            self.type = check_name("job type", type)
            args = payload.encode(dict(arguments))
        checked = option.read(options)
        payload.check_size(len(args), checked.extras_size)
        self.drawn = checked.key is None
        """Whether the key is ours: then only we can have used it before."""
        self.key = checked.key or f"{runtime.nonce()}{runtime.nonce()}"
        # Not in a header: those carry no more than ASCII without dispute.
        self.body = msgspec.json.encode(
            {
                "type": self.type,
                "arguments": msgspec.Raw(args),
                **_written(options),
                "idempotency_key": self.key,
            }
        )

    def __repr__(self) -> str:
        return f"<HttpCall {self.type}>"


def _written(options: Mapping[str, object]) -> dict[str, object]:
    """Write options that have been checked as the service reads them."""
    given: dict[str, Any] = {
        name: value
        for name, value in options.items()
        if value is not None and name != "idempotency_key"
    }
    for name in ("delay", "timeout"):
        if name in given:
            given[name] = option.seconds(name, given[name])
    if "retry" in given:
        given["retry"] = _policy(cast("Retry", given["retry"]))
    return given


def _policy(retry: Retry) -> dict[str, object]:
    if retry.function is not None:
        raise InvalidOption(
            "retry has a function, which cannot be sent to a service",
            hint="name the delays, as in retry=Retry(delays=[60, 300])",
            value=retry,
        )
    return {name: getattr(retry, name) for name in _RETRY if getattr(retry, name) is not None}
