"""What callers get: the store's values as the documented answers. Fields stay as they are."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any, Literal, cast

import msgspec

from lamplighter import payload
from lamplighter.model.job import TERMINAL, Attempt, ErrorInfo, JobRecord, JobState, Status
from lamplighter.model.journal import Line, Progress
from lamplighter.port.values import DeadGroup as DeadLetters
from lamplighter.port.values import DeadGroups as DeadLetterGroups
from lamplighter.port.values import QueueInfo, TenantInfo, TypeRow, WorkerInfo
from lamplighter.server.auth import Principal
from lamplighter.server.marks import Note, instant, maybe_instant, note

_LONGEST_RUN_MS = 100 * 365 * 86_400_000
"""Whatever says more is no time since the beginning of a run."""


class Submitted(msgspec.Struct, kw_only=True, frozen=True):
    """What became of a submission."""

    id: str
    """Id of the job: the new one, or the one that has the key already. Of the schedule, if one was
    asked for."""
    answer: Literal["created", "already", "changed", "gone", "conflict"]
    """`created`; `already`: this submission was made before; `gone`: it was made before, and its
    job has been removed since; `conflict`, in batches only: another submission has the key;
    `changed`, of schedules only: there was another one of this id."""
    next_run: datetime | msgspec.UnsetType | None = msgspec.UNSET
    """Of a schedule: when it is fired next; null: never, or it is held."""


class SubmittedBatch(msgspec.Struct, kw_only=True, frozen=True):
    """What became of each submission of a batch, in its order."""

    jobs: list[Submitted]
    created: int


class ErrorSummary(msgspec.Struct, kw_only=True, frozen=True):
    """Why the last attempt failed."""

    type: str
    message: str


class ProgressShape(msgspec.Struct, kw_only=True, frozen=True):
    """How far the last attempt said it had come, in its own units."""

    done: float
    total: float | None
    note: str


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """A job."""

    id: str
    type: str
    queue: str
    tenant: str
    status: Status
    next_run: datetime | None
    """When it is due, if it waits."""
    created_at: datetime
    started_at: datetime | None
    """When its last attempt began."""
    finished_at: datetime | None
    result: Any
    """What its handler returned, if it succeeded. This, `reason`, `error` and `progress` are null
    in answers to changes by callers without the scope `jobs:read`."""
    result_note: str | None
    """Why there is no result although it succeeded."""
    reason: str | None
    """Why it is dead or cancelled."""
    error: ErrorSummary | None
    progress: ProgressShape | None
    """How far its last attempt has said that it has come."""
    omitted: list[str]
    """In lists: fields that are left out or cut because they are large; `GET /v1/jobs/{id}` has
    them."""


class JobPage(msgspec.Struct, kw_only=True, frozen=True):
    """Some jobs, newest first."""

    jobs: list[Job]
    next: str | None
    """Cursor of the next page; null: that was all. A page may be short and have one."""


class ErasedJob(msgspec.Struct, kw_only=True, frozen=True):
    """A job of which nothing is left."""

    id: str


class AttemptError(ErrorSummary, kw_only=True, frozen=True):
    """Why an attempt failed, and where."""

    fingerprint: str
    """Same place, same kind: equal errors have equal fingerprints."""
    traceback: str
    """Empty: the handler was not at fault."""


class AttemptShape(msgspec.Struct, kw_only=True, frozen=True):
    """One attempt to run a job."""

    generation: int
    number: int
    lease: int
    outcome: str
    worker: str
    """Where it ran; empty for callers of one tenant."""
    started_at: datetime
    finished_at: datetime | None
    error: AttemptError | None


class Attempts(msgspec.Struct, kw_only=True, frozen=True):
    """Attempts of a job, oldest first."""

    attempts: list[AttemptShape]
    next: str | None
    """The cursor that leads to those before them; null: there are none."""


class LogLine(msgspec.Struct, kw_only=True, frozen=True):
    """One line of a log."""

    lease: int
    """Names the attempt."""
    number: int
    """Place in the attempt's log; numbers that are missing were cut."""
    at: datetime | None
    level: str
    text: str


class LogPage(msgspec.Struct, kw_only=True, frozen=True):
    """Some lines of a job's log, oldest first."""

    lines: list[LogLine]
    next: str | None
    """Cursor behind the last line, also for lines that are yet to come; null: there were none."""


class JobType(msgspec.Struct, kw_only=True, frozen=True):
    """One version of a job type."""

    name: str
    queue: str
    hash: str
    live_workers: int
    schema: dict[str, Any]
    """JSON Schema of its arguments."""
    held: bool


class JobTypes(msgspec.Struct, kw_only=True, frozen=True):
    """The job types that workers have published."""

    types: list[JobType]


class Queue(msgspec.Struct, kw_only=True, frozen=True):
    """A queue. Counts are exact up to 10,000; then they mean: at least."""

    name: str
    ready: int
    scheduled: int
    running: int
    waiting_by_priority: dict[str, int]
    """Waiting jobs, due or not."""
    oldest_due_seconds: float | None
    max_wait_seconds: float
    """A job that has been due for longer goes first, whatever its priority."""
    held: bool
    hold: Note | None


class Queues(msgspec.Struct, kw_only=True, frozen=True):
    """All queues."""

    queues: list[Queue]


class RemovedQueue(msgspec.Struct, kw_only=True, frozen=True):
    """A queue that is listed no more."""

    name: str
    answer: str
    """`done`, or `already`: it was removed before."""


class Tenant(msgspec.Struct, kw_only=True, frozen=True):
    """Whoever jobs run for. Counts are exact up to 10,000; then they mean: at least."""

    name: str
    weight: int
    """Share of the workers, in proportion to the weights of others."""
    waiting: int
    running: int
    held: bool
    hold: Note | None


class Tenants(msgspec.Struct, kw_only=True, frozen=True):
    """The tenants that have settings, waiting or running jobs."""

    tenants: list[Tenant]


class DeadGroup(msgspec.Struct, kw_only=True, frozen=True):
    """Dead letters of one type with one cause."""

    fingerprint: str
    type: str
    queue: str
    count: int
    newest_at: datetime
    example: str
    """Id of the newest job among them."""
    reason: str
    error: ErrorSummary | None


class DeadGroups(msgspec.Struct, kw_only=True, frozen=True):
    """Dead letters by cause, the most frequent first; the newest 10,000 are counted."""

    groups: list[DeadGroup]
    at_least: bool
    """Whether there are older ones, which were not looked at: each count may be too small, and
    causes may be missing."""


class ChangeAnswers(msgspec.Struct, kw_only=True, frozen=True):
    """How many jobs were answered what."""

    done: int
    requested: int
    """Running jobs that were told to stop."""
    already: int
    """It was so before."""
    conflict: int
    """The job's state forbids it, or it has left the statuses that were meant."""
    unknown: int
    """The job is not there any more."""


class JobsChanged(msgspec.Struct, kw_only=True, frozen=True):
    """What was done to jobs, or would be."""

    dry_run: bool
    answers: ChangeAnswers
    next: str | None
    """Cursor to go on with, to older jobs; null: all have been seen."""


class DeadDone(msgspec.Struct, kw_only=True, frozen=True):
    """What was done to dead letters, or would be."""

    dry_run: bool
    done: int
    """To how many it was done."""
    ids: list[str]
    """Those that were chosen, the newest first."""
    left: int
    """How many the filter still means now, among the newest 10,000 dead letters."""
    at_least: bool
    """Whether there are older dead letters, so that the filter may mean more than `left`."""
    next: str | None
    """Cursor to go on with, to older ones; null: all have been seen."""


class Worker(msgspec.Struct, kw_only=True, frozen=True):
    """A worker."""

    id: str
    host: str
    pid: int
    state: str
    queues: list[str]
    types: list[str]
    slots: int
    running: int
    joined_at: datetime
    beat_at: datetime


class Workers(msgspec.Struct, kw_only=True, frozen=True):
    """All workers."""

    workers: list[Worker]


class Health(msgspec.Struct, kw_only=True, frozen=True):
    """All is well."""

    status: str


LARGE = 1_024
"""Bytes of a value, and characters of a text, that a list shows in full."""


def short(text: str | None) -> str | None:
    """Return the beginning of a text that may be long."""
    return text if text is None or len(text) <= LARGE else text[: LARGE - 1] + "…"


def brief(record: JobRecord) -> Job:
    """Return a job as lists show it: what is large is left out, and said to be."""
    error = record.error
    omitted: list[str] = []
    if record.result is not None and len(record.result) > LARGE:
        omitted.append("result")
        record = dataclasses.replace(record, result=None)
    if len(record.reason or "") > LARGE:
        omitted.append("reason")
        record = dataclasses.replace(record, reason=short(record.reason))
    if error is not None and len(error.message) > LARGE:
        omitted.append("error")
        record = dataclasses.replace(
            record, error=dataclasses.replace(error, message=short(error.message))
        )
    shown = job(record)
    return msgspec.structs.replace(shown, omitted=omitted) if omitted else shown


def job(record: JobRecord, *, content: bool = True) -> Job:
    """Return the thin form of a job.

    Without ``content``, as the answer to a change by a caller who may not read jobs, nothing in it
    comes from the job's handler.
    """
    job = record.job
    waits = record.state in {JobState.WAITING, JobState.BLOCKED}
    return Job(
        id=job.id,
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        status=record.status,
        next_run=instant(job.due_at_ms) if waits else None,
        created_at=instant(job.created_at_ms),
        started_at=maybe_instant(None if record.status is Status.CLAIMED else record.claimed_at_ms),
        finished_at=maybe_instant(record.finished_at_ms) if record.state in TERMINAL else None,
        result=plain(record.result) if content else None,
        result_note=record.result_note if content else None,
        reason=record.reason if content else None,
        error=error_summary(record.error) if content else None,
        progress=progress(record.progress) if content else None,
        omitted=[],
    )


def progress(found: Progress | None) -> ProgressShape | None:
    """Return how far a job has come, if it has said so."""
    if found is None:
        return None
    return ProgressShape(done=found.done, total=found.total, note=found.note)


def attempt(found: Attempt, *, worker: bool = True) -> AttemptShape:
    """Return one attempt; without ``worker`` it does not say where it ran."""
    return AttemptShape(
        generation=found.generation,
        number=found.number,
        lease=found.lease,
        outcome=found.outcome,
        worker=found.worker if worker else "",
        started_at=instant(found.started_at_ms),
        finished_at=maybe_instant(found.finished_at_ms),
        error=None if found.error is None else _attempt_error(found.error),
    )


def _attempt_error(found: ErrorInfo) -> AttemptError:
    return AttemptError(
        type=found.type,
        message=found.message,
        fingerprint=found.fingerprint,
        traceback=found.traceback,
    )


def log_line(found: Line, lease: int, of: Attempt | None) -> LogLine:
    """Return one line of a log; when it was is said if its attempt is known."""
    known = of is not None and 0 <= found.at_ms <= _LONGEST_RUN_MS
    at = instant(of.started_at_ms + found.at_ms) if of is not None and known else None
    return LogLine(lease=lease, number=found.number, at=at, level=found.level, text=found.text)


def job_type(row: TypeRow) -> JobType:
    """Return one version of a job type."""
    return JobType(
        name=row.name,
        queue=row.queue,
        hash=row.hash,
        live_workers=row.live_workers,
        schema=schema_of(row),
        held=row.held is not None,
    )


def schema_of(row: TypeRow) -> dict[str, Any]:
    """Read the schema of a type; one that cannot be read says nothing."""
    found = plain(row.schema.encode())
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def queue(found: QueueInfo, principal: Principal) -> Queue:
    """Return a queue."""
    oldest = found.oldest_due_ms
    return Queue(
        name=found.name,
        ready=found.ready,
        scheduled=found.scheduled,
        running=found.running,
        waiting_by_priority={level.label: count for level, count in found.by_level.items()},
        oldest_due_seconds=None if oldest is None else oldest / 1000,
        max_wait_seconds=found.max_wait_ms / 1000,
        held=found.held is not None,
        hold=note(found.held, principal),
    )


def tenant(found: TenantInfo, principal: Principal) -> Tenant:
    """Return a tenant."""
    return Tenant(
        name=found.name,
        weight=found.weight,
        waiting=found.waiting,
        running=found.running,
        held=found.held is not None,
        hold=note(found.held, principal),
    )


def dead_groups(found: DeadLetterGroups) -> DeadGroups:
    """Return dead letters by cause."""
    return DeadGroups(groups=list(map(dead_group, found.groups)), at_least=found.at_least)


def dead_group(found: DeadLetters) -> DeadGroup:
    """Return dead letters with one cause; their frames stay with the operators of the store."""
    return DeadGroup(
        fingerprint=found.fingerprint,
        type=found.type,
        queue=found.queue,
        count=found.count,
        newest_at=instant(found.newest_at_ms),
        example=found.example,
        reason=short(found.reason) or "",
        error=brief_error(found.error),
    )


def brief_error(found: ErrorInfo | None) -> ErrorSummary | None:
    """Return what lists show of an error."""
    if found is None:
        return None
    return ErrorSummary(type=found.type, message=short(found.message) or "")


def worker(found: WorkerInfo) -> Worker:
    """Return a worker."""
    return Worker(
        id=found.id,
        host=found.host,
        pid=found.pid,
        state=found.state,
        queues=list(found.queues),
        types=list(found.types),
        slots=found.slots,
        running=found.running,
        joined_at=instant(found.joined_at_ms),
        beat_at=instant(found.beat_at_ms),
    )


def error_summary(found: ErrorInfo | None) -> ErrorSummary | None:
    """Return what callers see of an error."""
    return None if found is None else ErrorSummary(type=found.type, message=found.message)


def plain(written: bytes | None) -> Any:
    """Read stored JSON; bytes that are none are shown as text."""
    if written is None:
        return None
    try:
        return payload.plain(written)
    except (ValueError, RecursionError):
        return written.decode(errors="replace")
