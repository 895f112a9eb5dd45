"""The job types of a program: which function runs a job, and what it takes and gives.

Handlers are found by the name they were registered under and by nothing else: a stored job can
never make a worker import something.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

import msgspec

from lamplighter import fidelity, payload, signature
from lamplighter.hooks import Hooks
from lamplighter.middleware import Middleware
from lamplighter.model.counts import counted
from lamplighter.model.errors import (
    InvalidArguments,
    InvalidHandler,
    InvalidOption,
    InvalidPayload,
    UnknownType,
)
from lamplighter.model.isolation import ORDINARY, Isolation, Surroundings
from lamplighter.model.job import Delivery, Level
from lamplighter.model.names import DEFAULT_QUEUE, PAYLOAD_LIMIT, check_name, shown
from lamplighter.model.retry import Retry
from lamplighter.payload import DoesNotFit, NotJson
from lamplighter.port.values import TypeInfo
from lamplighter.providers import Providers

__all__ = ["DoesNotFit", "JobType", "NotJson", "Registry"]

_DEFAULT_RETRY = Retry()
_NOTE_LIMIT = 500
"""Characters; a note may quote the keys of a result, and they may be of any length."""


class JobType:
    """One kind of job: its handler, and the options it has unless a submission says otherwise."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        level: Level = Level.NORMAL,
        retry: Retry | None = None,
        timeout: float | None = None,
        delivery: Delivery = Delivery.AT_LEAST_ONCE,
        hard_after: float | None = None,
        stalled_after: float | None = None,
        secrets: tuple[str, ...] = (),
        isolation: Isolation = Isolation.SHARED,
        surroundings: Surroundings = ORDINARY,
    ) -> None:
        self.function = function
        self.signature = signature.read(function)
        self.name = _name(function, name)
        self.queue = check_name("queue", queue)
        self.level = level
        self.own_retry = _checked_retry(retry, delivery)
        """The policy given for this type, or None."""
        self.retry = retry or _DEFAULT_RETRY
        """The policy for a job that brings none of its own."""
        self.timeout = timeout
        """Seconds a handler has; None: what the settings say."""
        self.hard_after = hard_after
        """Seconds between its timeout and the end of its process; None: what the settings say."""
        self.delivery = delivery
        self.stalled_after = stalled_after
        """Seconds a handler may be without progress; None: as long as its timeout."""
        self.secrets = tuple(dict.fromkeys(secrets))
        """Names of arguments whose values are shown nowhere."""
        self.isolation = isolation
        self.surroundings = surroundings
        """What the process is like in which its jobs run alone."""
        self.is_async = self.signature.is_async
        self.wants_context = self.signature.wants_context
        self.needs = self.signature.needs
        self.schema = signature.with_secrets(self.signature.schema, self.secrets)
        self.hash = self._hash()
        self._positional = self.signature.positional
        self._arguments: msgspec.json.Decoder[msgspec.Struct] = msgspec.json.Decoder(
            self.signature.arguments, dec_hook=payload.from_json
        )
        self._names = msgspec.json.Decoder(self.signature.names)
        self._result: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
            self.signature.result, dec_hook=payload.from_json
        )

    # ── submit ───────────────────────────────────────────────────────────────────────────────

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bytes:
        """Write the arguments of a call as JSON by name, or say why the handler refuses them."""
        given: dict[str, object] = dict(zip(self._positional, args, strict=False))
        if len(args) > len(self._positional):
            value = len(args) if self.secrets else args
            told = counted(len(args), "argument by position was", "arguments by position were")
            self._misfit(f"{told} given", value)
        if kwargs:
            for name in kwargs:
                if name in given:
                    self._misfit(f"`{name}` was given twice, by position and by name", name)
                if name in self.needs:
                    self._misfit(f"`{name}` is filled in by the worker", name)
            given.update(kwargs)
        written, exotic = payload.write(given, "arguments", self.secrets, blind=False)
        misfit = None
        try:
            read = self._arguments.decode(written)
        except Exception as error:  # noqa: BLE001 - models validate with foreign code
            misfit = payload.explain_misfit(error, written, "arguments", self.secrets)
        else:
            if exotic:
                self._check_kept(given, read)
        if misfit is not None:
            # Raised out here, so that it does not bring along the error that quotes the value.
            self._misfit(*misfit)
        return written

    def _check_kept(self, given: Mapping[str, object], read: msgspec.Struct) -> None:
        """Refuse what the handler would get as something else than what was given."""
        for name, value in given.items():
            change = fidelity.first_change(value, getattr(read, name), f"arguments.{name}")
            if change is None:
                continue
            if name in self.secrets:
                raise InvalidPayload(
                    f"arguments.{name}: its value, which is secret, would come back as another",
                    hint="annotate the parameter with its type, or submit plain JSON data",
                ) from None
            payload.refuse_change(change)

    def check_secrets(self) -> None:
        """Refuse secrets that are no arguments: a mistyped one would hide nothing."""
        known = self.signature.arguments.__struct_fields__
        for name in self.secrets:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                guess = f"did you mean `{near[0]}`? " if near else ""
                raise InvalidOption(
                    f"the secret {shown(name)} is no argument of `{self.name}`",
                    hint=f"{guess}its arguments: {', '.join(known) or 'none'}",
                    value=name,
                )

    def _misfit(self, cause: str, value: object) -> NoReturn:
        raise InvalidArguments(
            f"`{self.name}` cannot be called like this: {cause}",
            hint=f"call it as {self.signature.text}",
            value=value,
        ) from None

    # ── run ──────────────────────────────────────────────────────────────────────────────────

    def decode(self, written: bytes) -> dict[str, object]:
        """Read stored arguments into what the handler takes by name.

        Raises NotJson for bytes that no version could read, DoesNotFit for arguments that this
        version of the handler does not take.
        """
        return msgspec.structs.asdict(self._read(self._arguments, written))

    def check_names(self, written: bytes) -> None:
        """Raise as `decode` does where the names of stored arguments alone do not fit.

        No code of the program runs for it, so that it can neither take long nor hurt anybody.
        """
        self._read(self._names, written)

    def _read(
        self, decoder: msgspec.json.Decoder[msgspec.Struct], written: bytes
    ) -> msgspec.Struct:
        try:
            return decoder.decode(written)
        except Exception as error:  # noqa: BLE001 - models validate with foreign code
            reason = None if self.secrets else error
            payload.object_in(written, secret=bool(self.secrets))
            cause, value = payload.explain_misfit(error, written, "arguments", self.secrets)
        raise DoesNotFit(
            f"the stored arguments do not fit `{self.name}`: {cause}",
            hint=f"this worker's handler is {self.signature.text}; deploy the version that "
            "fits, or submit the job again",
            value=value,
        ) from reason

    def fill(self, values: Mapping[object, object]) -> dict[str, object]:
        """Return the parameters that are provided, by name."""
        return {name: values[kind] for name, kind in self.needs.items()}

    def encode_result(self, value: object) -> tuple[bytes | None, str | None]:
        """Write a result as JSON; what cannot be kept gives None and a note that says why.

        Never raises: the handler has returned, and its effect with it.
        """
        if value is None:
            return None, None
        try:
            written, exotic = payload.encode_value_for(value, "result")
            if exotic and (lost := self._lost_bytes(value, written)):
                return None, _cut(f"the result was not kept: {lost}")
        except InvalidPayload as error:
            cause = "it is not JSON data" if self.secrets else error.cause
            return None, _cut(f"the result was not kept: {cause}")
        except Exception as error:  # noqa: BLE001 - no value may make a finished job fail
            return None, _cut(f"the result was not kept: {type(error).__name__} while writing it")
        if len(written) > PAYLOAD_LIMIT:
            return None, (
                f"the result was not kept: it has {counted(len(written), 'byte')} as JSON, "
                f"the limit is {PAYLOAD_LIMIT:,}"
            )
        return written, None

    def _lost_bytes(self, value: object, written: bytes) -> str | None:
        """Say which bytes in a result would come back as text; other values do so on purpose."""
        found = fidelity.changes(value, self._result.decode(written), "result")
        change = next((each for each in found if fidelity.holds_bytes(each.given)), None)
        if change is None:
            return None
        if self.secrets:
            return "it is not JSON data"
        return f"{change.path} has bytes, which JSON does not; return text, or annotate them"

    def decode_result(self, written: bytes | None) -> object:
        """Read a stored result as the handler's return type."""
        if written is None:
            return None
        try:
            return self._result.decode(written)
        except Exception as error:
            cause, value = payload.explain_misfit(error, written, "result")
            raise InvalidPayload(
                f"the stored result does not fit the return type of `{self.name}`: {cause}",
                hint="correct the handler's return annotation, or read the plain JSON with "
                "`(await handle.record()).result`",
                value=value,
            ) from error

    # ── tell others ──────────────────────────────────────────────────────────────────────────

    def info(self) -> TypeInfo:
        """Return what a worker publishes about this type."""
        return TypeInfo(
            name=self.name,
            schema=self.schema,
            hash=self.hash,
            queue=self.queue,
            options=self._options(),
        )

    def _options(self) -> dict[str, object]:
        options: dict[str, object] = {
            "priority": self.level.label,
            "delivery": self.delivery.value,
        }
        for name in ("timeout", "hard_after", "stalled_after"):
            if (seconds := getattr(self, name)) is not None:
                options[name] = seconds
        if self.secrets:
            options["secrets"] = list(self.secrets)
        if self.isolation is not Isolation.SHARED:
            options["isolation"] = self.isolation.value
            options.update(self.surroundings.limits.given())
        if self.own_retry is not None:
            function = self.own_retry.function
            options["retry"] = (
                json.loads(self.own_retry.to_json())
                if function is None
                else {"function": getattr(function, "__name__", "function")}
            )
        return options

    def _hash(self) -> str:
        version = json.dumps([self.name, self.schema, self.queue, self._options()], sort_keys=True)
        return hashlib.sha256(version.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"<JobType {self.name}: {self.signature.text}>"


def _cut(note: str) -> str:
    """Shorten the middle: the beginning says where it was, the end what was wrong."""
    if len(note) <= _NOTE_LIMIT:
        return note
    half = (_NOTE_LIMIT - 1) // 2
    return f"{note[:half]}…{note[-half:]}"


class Registry:
    """The job types of one program, by name, and what stands around them."""

    def __init__(self) -> None:
        self.providers = Providers()
        self.middleware: list[Middleware] = []
        """What runs around each handler, outermost first."""
        self.hooks = Hooks()
        self._types: dict[str, JobType] = {}

    def add(self, job_type: JobType) -> JobType:
        """Take in a job type; a name can be taken once."""
        known = self._types.get(job_type.name)
        if known is not None:
            raise InvalidHandler(
                f"two handlers want the name `{job_type.name}`: {_place(known.function)} and "
                f"{_place(job_type.function)}",
                hint="give one of them another name with `@app.job(name=…)`",
                value=job_type.name,
            )
        self._types[job_type.name] = job_type
        return job_type

    def get(self, name: str) -> JobType:
        """Find a job type, or say which names are known."""
        known = self._types.get(name)
        if known is None:
            near = difflib.get_close_matches(name, self._types, n=1)
            listed = ", ".join(sorted(self._types)[:20]) or "none"
            guess = f"did you mean `{near[0]}`? " if near else ""
            raise UnknownType(
                f"no job type {shown(name)} is registered here",
                hint=f"{guess}known here: {listed}",
                value=name,
            )
        return known

    def check(self) -> None:
        """Raise InvalidHandler if a handler needs what nobody provides."""
        for name in self.names():
            self.providers.check(name, self._types[name].needs)

    def names(self) -> tuple[str, ...]:
        """List the known names, sorted."""
        return tuple(sorted(self._types))

    def infos(self) -> tuple[TypeInfo, ...]:
        """Return what a worker publishes about all its types."""
        return tuple(self._types[name].info() for name in sorted(self._types))

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __len__(self) -> int:
        return len(self._types)


def _name(function: Callable[..., object], name: str | None) -> str:
    if name is None and function.__name__ == "<lambda>":
        raise InvalidHandler(
            "a lambda has no name under which its jobs could be stored",
            hint="write a `def`, or give a name with `name=…`",
            value=function,
        )
    return check_name("job type", function.__name__ if name is None else name)


def _checked_retry(retry: object, delivery: Delivery) -> Retry | None:
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidOption(
            f"retry is {shown(retry)}",
            hint="give a policy, as in retry=Retry(delays=[60, 300])",
            value=retry,
        )
    if retry is not None and delivery is Delivery.AT_MOST_ONCE and retry.max_attempts > 1:
        raise InvalidOption(
            "a job type that runs at most once was given a retry policy",
            hint="leave retry out, or choose delivery at_least_once",
            value=retry,
        )
    return retry


def _place(function: Callable[..., object]) -> str:
    module = cast("str", getattr(function, "__module__", "?"))
    return f"{module}.{function.__qualname__}"
