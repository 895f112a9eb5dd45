"""From the body of a request to a schedule: checked as a whole before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import msgspec

from lamplighter import options as option
from lamplighter import payload, runtime
from lamplighter.job import Call
from lamplighter.model.errors import InvalidArguments, InvalidInput, InvalidOption, WrongState
from lamplighter.model.job import NewJob
from lamplighter.model.names import check_name, shown
from lamplighter.model.recurring import Policy, Template
from lamplighter.model.schedule import Calendar
from lamplighter.model.timetable import moment
from lamplighter.port import specs
from lamplighter.port.schedules import NewSchedule, PutAnswer
from lamplighter.schedules import Schedule, ScheduleOptions, new_schedule
from lamplighter.secrecy import HIDDEN
from lamplighter.server.auth import Principal, Scope
from lamplighter.server.calendars import KINDS, Times, calendar_of, changed_calendar
from lamplighter.server.errors import TooFrequent
from lamplighter.server.service import HttpService, unknown_schedule
from lamplighter.server.submission import RetryPolicy, checked_job

NAMELESS = "new"
"""Stands for the id that a schedule will have; no answer depends on it but where `H` is drawn."""
NO_JOB = NewJob(id="", type="none", args=b"{}")
"""Stands for the job of a schedule whose times alone are looked at."""

_TRIES = 5
"""How often a change is made anew because somebody else was quicker."""
_JOB = ("queue", "priority", "tenant", "retry", "timeout", "tags", "metadata")
_WORDS: Mapping[PutAnswer, Literal["created", "changed", "already"]] = {
    PutAnswer.CREATED: "created",
    PutAnswer.CHANGED: "changed",
    PutAnswer.ALREADY: "already",
}
"""What can become of a put that expects no version."""
_POLICY = tuple(name for name in ScheduleOptions.__annotations__ if name != "timezone")


class ScheduleFields(Times, kw_only=True, forbid_unknown_fields=True):
    """What there is to say about a schedule, but for the type of its job."""

    id: str | None = None
    """Its name; the same again changes it. Without it one is drawn."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Arguments of each job by name, as the type's schema says."""
    queue: str | None = None
    priority: Literal["critical", "high", "normal", "low"] | None = None
    tenant: str | None = None
    """On whose behalf its jobs run."""
    retry: RetryPolicy | None = None
    timeout: float | None = None
    """Seconds the handler has."""
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None


class NewScheduleBody(ScheduleFields, kw_only=True, forbid_unknown_fields=True):
    """A schedule: which job, and when."""

    type: str
    """Name of the job type."""


ScheduleChange = msgspec.defstruct(
    "ScheduleChange",
    [
        (field.name, field.type | msgspec.UnsetType, msgspec.UNSET)
        for field in msgspec.structs.fields(NewScheduleBody)
        if field.name not in {"id", "tenant"}
    ],
    namespace={"__doc__": "What is to be different about a schedule; null means: by default."},
    module=__name__,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Every field of a new schedule but its tenant and id, each of which may be left out."""


def named(schedule_id: str | None, job_type: str) -> str:
    """Return the id of a new schedule; draw one if none is given."""
    return f"{job_type}-{runtime.nonce()}" if schedule_id is None else schedule_id


async def new_of(service: HttpService, principal: Principal, body: NewScheduleBody) -> NewSchedule:
    """Check a schedule and make it, without storing it yet."""
    given = msgspec.structs.asdict(body)
    calendar = await asyncio.to_thread(calendar_of, given)
    job = await checked_job(service, principal, body.type, body.arguments, job_options(given))
    return await asyncio.to_thread(made, named(body.id, body.type), calendar, job, given)


def made(
    schedule_id: str, calendar: Calendar, job: NewJob, given: Mapping[str, Any]
) -> NewSchedule:
    """Make a schedule of its parts; of what is given only the policy is read."""
    policy = {name: given[name] for name in _POLICY if given.get(name) is not None}
    return new_schedule(schedule_id, calendar, Call[object](job), policy)


async def changed_of(
    service: HttpService, principal: Principal, found: Schedule, change: msgspec.Struct
) -> NewSchedule:
    """Make the schedule that a change makes of a stored one; what is not given stays.

    An error quotes what is stored only to callers who may read schedules.
    """
    given = _given(change)
    try:
        return await _merged(service, principal, found, given)
    except InvalidInput as error:
        if principal.has(Scope.SCHEDULES_READ) or _is_about_given_arguments(error, given):
            raise
        await _check_alone(service, principal, found.record.type, given)
        raise _misfit(error, found, given) from None


def _given(change: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.structs.asdict(change).items()
    return {name: value for name, value in fields if value is not msgspec.UNSET}


async def _merged(
    service: HttpService, principal: Principal, found: Schedule, given: Mapping[str, Any]
) -> NewSchedule:
    spec = found.spec
    calendar = await asyncio.to_thread(changed_calendar, spec, given)
    job = await _changed_job(service, principal, spec.template, given)
    policy = {**_policy_fields(spec.policy), **given}
    return await asyncio.to_thread(made, found.id, calendar, job, policy)


def _is_about_given_arguments(error: InvalidInput, given: Mapping[str, Any]) -> bool:
    return isinstance(error, InvalidArguments) and "arguments" in given


async def _check_alone(
    service: HttpService, principal: Principal, job_type: str, given: Mapping[str, Any]
) -> None:
    """Check a change as if nothing were stored: then an error quotes the change alone."""
    new = {name: value for name, value in given.items() if value is not None}
    await asyncio.to_thread(_check_times, new)
    options = job_options(new)
    job_type = check_name("job type", new.get("type", job_type))
    if "arguments" in new:
        await checked_job(service, principal, job_type, new["arguments"], options)
    else:
        option.read(options)


def _check_times(given: Mapping[str, Any]) -> None:
    assumed: dict[str, Any] = {}
    if not any(name in given for name in KINDS):
        assumed["cron"] = "* * * * * *"
    if "rrule" in given:
        assumed["start"] = moment(0)
    made(NAMELESS, calendar_of({**assumed, **given}), NO_JOB, given)


def _misfit(error: InvalidInput, found: Schedule, given: Mapping[str, Any]) -> InvalidInput:
    """Make the error for a change that does not fit what is stored, without quoting that."""
    needed = "the scope `schedules:read` is needed to see what is stored"
    if isinstance(error, InvalidArguments):
        job_type = given.get("type", found.record.type)
        return InvalidArguments(
            f"the stored arguments do not fit {shown(job_type)}",
            hint=f"give all arguments anew; {needed}",
            value=job_type,
        )
    return InvalidOption(
        f"the change does not fit what is stored of the schedule {shown(found.id)}",
        hint="give what belongs together anew, as a calendar with its time zone, start and end; "
        f"{needed}",
        value=found.id,
    )


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a schedule that was put."""

    answer: Literal["created", "changed", "already"]
    version: int


async def put(service: HttpService, principal: Principal, new: NewSchedule) -> Stored:
    """Store a schedule in the name of whoever asks."""
    queue = _queue(new)
    await service.quotas.admit_schedule(principal, new)
    await service.queues.admit((queue,), principal.tenant)
    (answer,) = await service.schedules.put_many([new], by=principal.name)
    # Its first job may be far off: until then nobody else would count its queue.
    await service.queues.enter(queue, by=principal.name)
    return Stored(_WORDS[answer.answer], answer.version)


async def change(
    service: HttpService,
    principal: Principal,
    found: Schedule,
    given: msgspec.Struct,
    version: int | None,
) -> Schedule:
    """Change a schedule, of this version or as it is, and give it as it was before.

    What somebody else has changed meanwhile is read again, so that no change is lost.
    """
    tries = 0
    while True:
        if version is not None and version != found.record.version:
            raise _moved(found.id, found.record.version, version)
        new = await changed_of(service, principal, found, given)
        queue = _queue(new)
        moves = queue != found.spec.template.queue
        await _admit(service, principal, found, new, _given(given))
        if moves:
            await service.queues.admit((queue,), principal.tenant)
        sure = replace(new, expect_version=found.record.version)
        (answer,) = await service.schedules.put_many([sure], by=principal.name)
        if answer.answer is PutAnswer.UNKNOWN:
            raise unknown_schedule(found.id)
        if answer.answer is not PutAnswer.CONFLICT:
            if moves:
                await service.queues.enter(queue, by=principal.name)
            return found
        tries += 1
        if tries == _TRIES:
            raise _moved(found.id, answer.version, found.record.version)
        found = await service.schedule(found.id, principal, found.record.tenant)


async def _admit(
    service: HttpService,
    principal: Principal,
    found: Schedule,
    new: NewSchedule,
    given: Mapping[str, Any],
) -> None:
    """Check the quotas of a change; how often it fires is told to whoever knows its calendar."""
    try:
        await service.quotas.admit_schedule(principal, new)
    except (InvalidInput, TooFrequent) as error:
        knows = any(given.get(name) is not None for name in KINDS)
        if knows or principal.has(Scope.SCHEDULES_READ):
            raise
        if isinstance(error, InvalidInput):
            raise _misfit(error, found, given) from None
        raise TooFrequent(
            f"the schedule {shown(found.id)} would fire more often than its tenant's schedules may",
            hint=error.hint,
            value=found.id,
        ) from None


def _queue(new: NewSchedule) -> str:
    return specs.from_text(new.spec, new.id).template.queue


def _moved(schedule_id: str, now: int, before: int) -> WrongState:
    return WrongState(
        f"the schedule {shown(schedule_id)} has the version {now}, not {before}",
        hint="look at it again, and repeat the change with the version that it has now",
        value=before,
    )


def job_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said about the job of a schedule, as the options of a submission."""
    found = {name: given.get(name) for name in _JOB}
    if isinstance(found["retry"], RetryPolicy):
        found["retry"] = found["retry"].to_retry()
    return found


async def _changed_job(
    service: HttpService, principal: Principal, old: Template, given: Mapping[str, Any]
) -> NewJob:
    if not any(name in given for name in (*_JOB, "type", "arguments")):
        return NewJob(
            id="",  # the template has none
            type=old.type,
            args=old.args,
            queue=old.queue,
            level=old.level,
            tenant=old.tenant,
            delivery=old.delivery,
            extras=old.extras,
            cost=old.cost,
        )
    fields = _job_fields(old)
    stored = cast("dict[str, Any]", payload.plain(old.args))
    arguments = given.get("arguments", stored)
    job_type, secrets = given.get("type", old.type), old.extras.secrets
    if job_type != old.type:
        # Another type brings its own queue and priority, unless they are given too.
        del fields["queue"], fields["priority"]
        # Nor does it see what the first one hides: it may show it.
        _keep_secrets(arguments, secrets, given="arguments" in given)
    arguments = _unhidden(arguments, stored, secrets)
    options = job_options({**fields, **given})
    kept = secrets if job_type == old.type else ()
    job = await checked_job(service, principal, job_type, arguments, options, secrets=kept)
    if job_type == old.type and not await service.knows(job_type):
        # Nobody says anything else of it now: what may run once stays so.
        job = replace(job, delivery=old.delivery)
    return job


def _keep_secrets(arguments: Mapping[str, Any], secrets: Collection[str], *, given: bool) -> None:
    """Refuse to hand stored secrets over; values that are given anew are no secrets of ours."""
    for name in secrets:
        if name in arguments and (not given or arguments[name] == HIDDEN):
            raise InvalidArguments(
                f"the argument {shown(name)} is secret, and is not handed over to another type",
                hint="give all arguments anew, this one with its value",
                value=name,
            )


def _unhidden(
    arguments: Mapping[str, Any], stored: Mapping[str, Any], secrets: Collection[str]
) -> dict[str, Any]:
    """Put the stored value back where a caller repeats what stands in its place in listings."""
    return {
        name: stored.get(name) if name in secrets and value == HIDDEN else value
        for name, value in arguments.items()
    }


def _job_fields(old: Template) -> dict[str, Any]:
    return {
        "queue": old.queue,
        "priority": old.level.label,
        "tenant": old.tenant,
        "retry": old.extras.retry,
        "timeout": old.extras.timeout,
        "tags": list(old.extras.tags) or None,
        "metadata": dict(old.extras.metadata) or None,
    }


def _policy_fields(old: Policy) -> dict[str, Any]:
    return {
        "overlap": old.overlap.value,
        "catch_up": old.catch_up.value,
        "window": old.window_ms / 1000,
        "jitter": old.jitter_ms / 1000,
        "start": None if old.start_ms is None else moment(old.start_ms),
        "end": None if old.end_ms is None else moment(old.end_ms),
        "max_runs": old.max_runs,
        "hold_after": old.hold_after,
        "keep_succeeded": old.keep_succeeded,
        "keep_failed": old.keep_failed,
    }
