"""What was submitted, in the words of the test, and whether it is what the test expects."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from lamplighter import payload
from lamplighter.command import CommandType
from lamplighter.job import Job
from lamplighter.model.errors import InvalidArguments, InvalidOption
from lamplighter.model.job import JobRecord, Level, Status
from lamplighter.model.journal import Progress
from lamplighter.model.names import shown
from lamplighter.registry import Registry
from lamplighter.secrecy import HIDDEN
from lamplighter.testing.errors import NotSubmitted, StillSubmitted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job in the store of a test."""

    id: str
    type: str
    arguments: Mapping[str, object]
    """As the handler gets them: with its defaults, and as its types."""
    queue: str
    tenant: str
    priority: str
    delay: float
    """Seconds from the submission until it is due; a retry or a snooze moves that."""
    due_at: datetime
    tags: tuple[str, ...]
    metadata: Mapping[str, object]
    status: Status
    progress: Progress | None
    """How far its last attempt said it had come."""
    record: JobRecord
    """Everything else that the store knows."""

    def __str__(self) -> str:
        hidden = self.record.job.extras.secrets
        arguments = ", ".join(
            f"{name}={HIDDEN if name in hidden else repr(value)}"
            for name, value in self.arguments.items()
        )
        when = f", delay {self.delay:g} s" if self.delay else ""
        return (
            f"{self.type}({arguments}): queue {self.queue}, tenant {self.tenant}{when}, "
            f"{self.status.value}"
        )


def submission(record: JobRecord, registry: Registry) -> Submission:
    """Read a record as a test would say it."""
    job = record.job
    return Submission(
        id=job.id,
        type=job.type,
        arguments=_arguments(record, registry),
        queue=job.queue,
        tenant=job.tenant,
        priority=job.level.label,
        delay=(job.due_at_ms - job.created_at_ms) / 1000,
        due_at=_EPOCH + timedelta(milliseconds=job.due_at_ms),
        tags=job.extras.tags,
        metadata=job.extras.metadata,
        status=record.status,
        progress=record.progress,
        record=record,
    )


def _arguments(record: JobRecord, registry: Registry) -> Mapping[str, object]:
    job = record.job
    if job.type in registry and not isinstance(registry.get(job.type), CommandType):
        try:
            return registry.get(job.type).decode(job.args)
        except (payload.DoesNotFit, payload.NotJson):
            pass
    try:
        return payload.object_in(job.args)
    except payload.NotJson:
        return {"(not JSON)": job.args}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a test says about a submission. None: it does not matter."""

    type: str
    arguments: Mapping[str, object]
    queue: str | None = None
    tenant: str | None = None
    priority: str | None = None
    delay: float | timedelta | None = None
    run_at: datetime | None = None
    tags: Collection[str] = ()

    def fits(self, found: Submission) -> bool:
        """Tell whether this is one of those."""
        delay = self.delay.total_seconds() if isinstance(self.delay, timedelta) else self.delay
        return (
            self.type == found.type
            and all(
                name in found.arguments and _same(value, found.arguments[name])
                for name, value in self.arguments.items()
            )
            and self.queue in {None, found.queue}
            and self.tenant in {None, found.tenant}
            and (self.priority is None or Level.of(self.priority).label == found.priority)
            and (delay is None or round(delay * 1000) == round(found.delay * 1000))
            and self.run_at in {None, found.due_at}
            and set(self.tags) <= set(found.tags)
        )

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        options = ("queue", "tenant", "priority", "delay", "run_at")
        given = [f"{name} {getattr(self, name)}" for name in options if getattr(self, name)]
        if self.delay == 0:
            given.append("no delay")
        if self.tags:
            given.append(f"tags {', '.join(self.tags)}")
        return f"{self.type}({arguments})" + "".join(f", {option}" for option in given)


def expected(
    job: Job[..., Any] | str,
    named: Mapping[str, object],
    arguments: Mapping[str, object] | None,
    options: Mapping[str, Any],
    count: int | None = None,
) -> Expected:
    """Read what the test says; a name that could not be meant is refused, not just not found."""
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(given.get("tags"), str):
        given["tags"] = (given["tags"],)
    wanted = {**named, **(arguments or {})}
    if not isinstance(job, str) and not isinstance(job.type, CommandType):
        known = job.type.signature.arguments.__struct_fields__
        _check_arguments(job, wanted, known)
        if arguments is None:
            _check_options(job, given if count is None else {**given, "count": count}, known)
    return Expected(
        type=job if isinstance(job, str) else job.name,
        arguments=wanted,
        **given,
    )


def _check_arguments(
    job: Job[..., Any], wanted: Mapping[str, object], known: Sequence[str]
) -> None:
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            guess = f"did you mean `{near[0]}`? " if near else ""
            raise InvalidArguments(
                f"`{job.name}` takes no argument {shown(name)}, so it cannot be submitted with it",
                hint=f"{guess}it is {job.type.signature.text}",
                value=name,
            )


def _check_options(job: Job[..., Any], given: Mapping[str, object], known: Sequence[str]) -> None:
    for name in given:
        if name in known:
            raise InvalidOption(
                f"`{name}=` may mean the option or the argument of `{job.name}`",
                hint=f'give the arguments as in arguments={{"{name}": …}}; then `{name}=` is the '
                "option",
                value=name,
            )


def check_submitted(
    wanted: Expected, count: int | None, everything: Sequence[Submission]
) -> list[Submission]:
    """Return the submissions that fit, or say what was submitted instead."""
    found = [each for each in everything if wanted.fits(each)]
    if found and count in {None, len(found)}:
        return found
    if count == 0:
        check_not_submitted(wanted, everything)
        return []
    times = "not submitted" if not found else f"submitted {_times(len(found))}, not {count}"
    raise NotSubmitted(
        f"{wanted} was {times}\n\n{listed(everything, 'submitted')}",
        hint="compare with the list above; arguments are compared as the JSON they travel as",
        value=found,
    )


def check_not_submitted(wanted: Expected, everything: Sequence[Submission]) -> None:
    """Say what was submitted although it should not be."""
    found = [each for each in everything if wanted.fits(each)]
    if found:
        raise StillSubmitted(
            f"{wanted} was submitted {_times(len(found))}\n\n{listed(found, 'found')}",
            hint="say more about what must not be there, if another submission is meant",
            value=found,
        )


def listed(submissions: Sequence[Submission], word: str) -> str:
    """List submissions for an error message."""
    if not submissions:
        return f"{word}: nothing"
    lines = [f"  {each}" for each in submissions[:_LISTED]]
    if len(submissions) > _LISTED:
        lines.append(f"  … and {len(submissions) - _LISTED} more")
    return "\n".join([f"{word}:", *lines])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _same(one: object, other: object) -> bool:
    """Compare as JSON: a test may say a datetime where the store has its text."""
    return one == other or _written(one) == _written(other)


def _written(value: object) -> bytes:
    return payload.canonical(payload.encode_value(value, "the expected arguments"))
