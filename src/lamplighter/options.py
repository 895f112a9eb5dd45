"""What may be said about one submission or one job type, checked before anything is stored."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, NoReturn, TypedDict, cast

from lamplighter import payload, runtime
from lamplighter.config import HARD_AFTER
from lamplighter.model.errors import InvalidOption, InvalidPayload, InvalidTime
from lamplighter.model.isolation import Isolation, Limits, Surroundings
from lamplighter.model.job import NO_EXTRAS, Delivery, Extras, Level
from lamplighter.model.names import (
    DEFAULT_TENANT,
    TAG_COUNT_LIMIT,
    check_key,
    check_name,
    shown,
)
from lamplighter.model.quick import quick
from lamplighter.model.retry import LONGEST_DELAY, Retry
from lamplighter.model.timetable import milliseconds

Priority = Literal["critical", "high", "normal", "low"]
"""What goes first in a queue, from left to right."""

_END_OF_TIME_MS = 253_402_300_799_000
"""The last second of the year 9999: later instants cannot be shown as dates."""


class SubmitOptions(TypedDict, total=False):
    """Options of one submission. None means: not given."""

    delay: float | timedelta | None
    """Seconds from now until it is due."""
    run_at: datetime | None
    """When it is due, with a time zone; the past means now."""
    queue: str | None
    """Instead of the type's queue; so are priority, retry and timeout."""
    priority: Priority | None
    """What goes first; a job without one has that of its type."""
    tenant: str | None
    """On whose behalf it runs; tenants share the workers fairly."""
    idempotency_key: str | None
    """The caller's own name for this submission: the same again gives the same job."""
    retry: Retry | None
    """When it is retried, instead of the type's policy."""
    timeout: float | timedelta | None
    """Seconds that the handler has."""
    tags: Sequence[str] | None
    """Up to 20 names to find it by."""
    metadata: Mapping[str, object] | None
    """JSON data beside the arguments; counts towards the same size limit."""


class TypeOptions(TypedDict, total=False):
    """Options of a job type. None means: not given."""

    name: str | None
    """Name under which its jobs are stored; the function's name without it."""
    queue: str | None
    """Queue its jobs go to; `default` without it."""
    priority: Priority | None
    """`normal` without it."""
    retry: Retry | None
    """When a failed job is retried; `Retry()` without it."""
    timeout: float | timedelta | None
    """Seconds that the handler has; the setting `timeout` without it."""
    hard_after: float | timedelta | None
    """Seconds between its timeout and the end of its process; the setting `hard_after` without."""
    delivery: Literal["at_least_once", "at_most_once"] | None
    """What happens if nobody sees its end: it runs again, or is dead."""
    stalled_after: float | timedelta | None
    """Seconds without a word of progress after which the handler counts as out of time."""
    secrets: Sequence[str] | None
    """Names of arguments whose values appear in no log, error or listing."""
    isolation: Literal["shared", "process"] | None
    """`process`: each job runs alone in a process of its own, and can be killed alone."""
    limits: Limits | None
    """What one job may use; needs isolation="process"."""
    env: Mapping[str, str] | None
    """Variables beside those of the worker; needs isolation="process"."""
    cwd: str | Path | None
    """Working folder; needs isolation="process"."""


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options of a submission, ready to be put on jobs."""

    delay: float = 0.0
    run_at_ms: int | None = None
    queue: str | None = None
    level: Level | None = None
    tenant: str = DEFAULT_TENANT
    key: str | None = None
    extras: Extras = NO_EXTRAS
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    extras_size: int = 0
    """Bytes of metadata and of the lists of a retry policy, which count with the arguments."""
    given: bytes = b""
    """The options as given, in canonical JSON, for comparing two uses of one key."""

    def over(
        self, *, queue: str, level: Level, delivery: Delivery, secrets: tuple[str, ...] = ()
    ) -> Options:
        """Fill what the submission left open with what the job type says."""
        return Options(
            delay=self.delay,
            run_at_ms=self.run_at_ms,
            queue=self.queue or queue,
            level=level if self.level is None else self.level,
            tenant=self.tenant,
            key=self.key,
            extras=replace(self.extras, secrets=secrets) if secrets else self.extras,
            delivery=delivery,
            extras_size=self.extras_size,
            given=self.given,
        )


NO_OPTIONS = Options()
_EXTRAS = frozenset({"retry", "timeout", "tags", "metadata"})


def read(options: Mapping[str, object]) -> Options:
    """Check the options of a submission."""
    given = {name: value for name, value in options.items() if value is not None}
    check_known(options, SubmitOptions.__annotations__, "a submission")
    if "delay" in given and "run_at" in given:
        raise InvalidOption(
            f"both delay {shown(given['delay'])} and run_at {shown(given['run_at'])} were given",
            hint="give one of them",
            value=given["run_at"],
        )
    metadata = b""
    extras = NO_EXTRAS
    if not given.keys().isdisjoint(_EXTRAS):
        retry = _retry(given.get("retry"))
        tags = _tags(given.get("tags", ()))
        metadata = _metadata(given.get("metadata", {}))
        extras = Extras(
            retry=retry,
            timeout=positive_seconds("timeout", given["timeout"]) if "timeout" in given else None,
            tags=tags,
            metadata=payload.plain(metadata),
        )
    key = check_key(given["idempotency_key"]) if "idempotency_key" in given else None
    return Options(
        delay=_delay(given["delay"]) if "delay" in given else 0.0,
        run_at_ms=_run_at(given["run_at"]) if "run_at" in given else None,
        queue=check_name("queue", given["queue"]) if "queue" in given else None,
        level=Level.of(given["priority"]) if "priority" in given else None,
        tenant=check_name("tenant", given.get("tenant", DEFAULT_TENANT)),
        key=key,
        extras=extras,
        extras_size=_extras_size(metadata, extras) if extras is not NO_EXTRAS else 0,
        given=b"" if key is None else _as_given(given),
    )


def check_known(options: Mapping[str, object], known: Collection[str], whose: str) -> None:
    """Refuse names that are no options, and guess what was meant."""
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            guess = f"did you mean `{near[0]}`? " if near else ""
            raise InvalidOption(
                f"unknown option {shown(name)} of {whose}",
                hint=f"{guess}known: {', '.join(sorted(known))}",
                value=name,
            )


def positive_seconds(what: str, value: object) -> float:
    """Check a duration that must be longer than nothing."""
    number = seconds(what, value)
    if not 0.001 <= number <= LONGEST_DELAY:
        raise InvalidTime(
            f"{what} {shown(value)} is out of range",
            hint=f"give seconds between 0.001 and {LONGEST_DELAY:.0f}",
            value=value,
        )
    return number


def hard_after(what: str, value: object) -> float:
    """Check the time between a timeout and the end of a process, within the setting's bounds."""
    number = seconds(what, value)
    least, most = HARD_AFTER
    if not least <= number <= most:
        raise InvalidTime(
            f"{what} {shown(value)} is out of range",
            hint=f"give seconds between {least:g} and {most:.0f}",
            value=value,
        )
    return number


def delivery(value: object) -> Delivery:
    """Read a delivery as users write it."""
    try:
        return Delivery(cast("str", value))
    except ValueError:
        raise InvalidOption(
            f"unknown delivery {shown(value)}",
            hint=f"use one of {', '.join(choice.value for choice in Delivery)}",
            value=value,
        ) from None


def surroundings(isolation: Isolation, given: Mapping[str, object]) -> Surroundings:
    """Read what the process of an isolated job is like."""
    for name in ("limits", "env", "cwd"):
        if name in given and isolation is not Isolation.PROCESS:
            raise InvalidOption(
                f"{name} was given for handlers that share their process with others",
                hint='add isolation="process", or leave it out',
                value=given[name],
            )
    limits = given.get("limits", Limits())
    if not isinstance(limits, Limits):
        raise InvalidOption(
            f"limits is {shown(limits)}",
            hint="give what a job may use, as in limits=Limits(memory_mb=512)",
            value=limits,
        )
    cwd = given.get("cwd")
    if cwd is not None and (not isinstance(cwd, (str, Path)) or not str(cwd)):
        raise InvalidOption(
            f"cwd is {shown(cwd)}", hint='give a folder, as in cwd="/var/work"', value=cwd
        )
    return Surroundings(
        limits=limits,
        env=tuple(sorted(environment(given.get("env", {})).items())),
        cwd=None if cwd is None else str(cwd),
    )


def environment(value: object) -> dict[str, str]:
    """Check variables as users write them."""
    if not isinstance(value, Mapping):
        raise InvalidOption(f"env is {shown(value)}", hint=_ENV, value=value)
    for name, text in cast("Mapping[object, object]", value).items():
        if not _is_word(name) or not name or "=" in cast("str", name):
            raise InvalidOption(
                f"env has {shown(name)} as a name, which no variable can have",
                hint=_ENV,
                value=name,
            )
        if not _is_word(text):
            raise InvalidOption(
                f"env has a value for {shown(name)} that is not text, or has a NUL in it",
                hint=_ENV,
                value=name,
            )
    return dict(cast("Mapping[str, str]", value))


_ENV = 'give names and values as text, as in env={"PGHOST": "db"}'


def _is_word(value: object) -> bool:
    """Whether it can be part of an environment."""
    try:
        return isinstance(value, str) and "\0" not in os.fsencode(value).decode(errors="replace")
    except UnicodeEncodeError:
        return False


def secrets(value: object) -> tuple[str, ...]:
    """Check the names of secret arguments."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidOption(
            f"secrets is {shown(value)}, not a list of names",
            hint='give the names of arguments, as in secrets=["card_number"]',
            value=value,
        )
    return tuple(check_name("argument", name) for name in cast("Collection[object]", value))


def seconds(what: str, value: object) -> float:
    """Read a duration as users write it, of any sign."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidTime(
            f"{what} {shown(value)} is a {type(value).__name__}, not a duration",
            hint="give seconds as a number, or a timedelta",
            value=value,
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidTime(
            f"{what} {shown(value)} is not a finite number",
            hint="give seconds as a finite number",
            value=value,
        )
    return number


def _delay(value: object) -> float:
    number = seconds("delay", value)
    if number < 0:
        raise InvalidTime(
            f"delay {shown(value)} is negative",
            hint="give 0 or more seconds; a run_at in the past means now",
            value=value,
        )
    _check_before_the_end(runtime.now_ms() + number * 1000, "delay", value)
    return number


def instant(what: str, value: object) -> int:
    """Read an instant as users write it: in milliseconds since 1970, never earlier than it says."""
    if not isinstance(value, datetime):
        raise InvalidTime(
            f"{what} {shown(value)} is a {type(value).__name__}, not a datetime",
            hint="give a datetime with a time zone, as in datetime(2030, 1, 1, tzinfo=UTC)",
            value=value,
        )
    if value.utcoffset() is None:
        raise InvalidTime(
            f"{what} {shown(value.isoformat())} has no time zone, so it is no instant",
            hint="add one, as in datetime(2030, 1, 1, tzinfo=UTC) or value.astimezone()",
            value=value,
        )
    at_ms = milliseconds(value)
    _check_before_the_end(at_ms, what, value)
    return at_ms


def _run_at(value: object) -> int:
    return max(0, instant("run_at", value))


def _check_before_the_end(due_ms: float, what: str, value: object) -> None:
    if due_ms > _END_OF_TIME_MS:
        raise InvalidTime(
            f"{what} {shown(value)} leads beyond the year 9999",
            hint="give an earlier time; a job that should wait for a person can be held",
            value=value,
        )


def _retry(value: object) -> Retry | None:
    if value is None:
        return None
    if not isinstance(value, Retry):
        raise InvalidOption(
            f"retry is {shown(value)}",
            hint="give a policy, as in retry=Retry(delays=[60, 300])",
            value=value,
        )
    value.to_json()
    return value


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidOption(
            f"tags is {shown(value)}, not a list of names",
            hint='give a list, as in tags=["invoice", "eu"]',
            value=value,
        )
    tags = tuple(dict.fromkeys(check_name("tag", tag) for tag in cast("Sequence[object]", value)))
    if len(tags) > TAG_COUNT_LIMIT:
        raise InvalidOption(
            f"{len(tags)} tags were given, the limit is {TAG_COUNT_LIMIT}",
            hint="keep the tags you search by; the rest can go into metadata",
            value=tags,
        )
    return tags


def _extras_size(metadata: bytes, extras: Extras) -> int:
    """Count what a submission stores beside its arguments and may be of any length."""
    size = len(metadata) if extras.metadata else 0
    retry = extras.retry
    if retry is not None and (retry.no_retry_on or retry.delays):
        size += len(payload.encode_value([retry.no_retry_on, retry.delays], "retry"))
    return size


def _metadata(value: object) -> bytes:
    if not isinstance(value, Mapping):
        _refuse_metadata(value)
    written = payload.encode_value(
        dict(cast("Mapping[object, object]", value)), "metadata", plain=True
    )
    payload.check_size(0, len(written))
    return written


def _refuse_metadata(value: object) -> NoReturn:
    raise InvalidPayload(
        f"metadata {shown(value)} is a {type(value).__name__}, not a dict",
        hint='give a dict of JSON data, as in metadata={"source": "import"}',
        value=value,
    )


def _as_given(given: Mapping[str, object]) -> bytes:
    """Write options canonically, without the key itself."""
    body = {name: value for name, value in given.items() if name != "idempotency_key"}
    if "retry" in body:
        body["retry"] = cast("Retry", body["retry"]).to_json()
    if "run_at" in body:
        body["run_at"] = _run_at(body["run_at"])
    for name in ("delay", "timeout"):
        if name in body:
            body[name] = seconds(name, body[name])
    return payload.canonical(payload.encode(body, "options"))
