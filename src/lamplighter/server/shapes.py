"""What callers get: the store's values as the documented answers. Fields stay as they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, cast

import msgspec

from lamplighter import payload
from lamplighter.model.job import TERMINAL, Attempt, ErrorInfo, JobRecord, JobState, Mark, Status
from lamplighter.model.journal import Line
from lamplighter.port.values import DeadGroup as DeadLetters
from lamplighter.port.values import QueueInfo, Reason, TenantInfo, TypeRow, WorkerInfo

_LONGEST_RUN_MS = 100 * 365 * 86_400_000
"""Whatever says more is no time since the beginning of a run."""
_LAST_MS = 253_402_300_799_999


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
    """What its handler returned, if it succeeded."""
    result_note: str | None
    """Why there is no result although it succeeded."""
    reason: str | None
    """Why it is dead or cancelled."""
    error: ErrorSummary | None


class JobPage(msgspec.Struct, kw_only=True, frozen=True):
    """Some jobs, newest first."""

    jobs: list[Job]
    next: str | None
    """Cursor of the next page; null: that was all. A page may be short and have one."""


class Note(msgspec.Struct, kw_only=True, frozen=True):
    """Who did it, why and when."""

    by: str
    reason: str
    at: datetime


class WhyNot(msgspec.Struct, kw_only=True, frozen=True):
    """One reason why a job is not running."""

    why: str
    text: str
    until: datetime | None
    count: int | None
    note: Note | None


class Explanation(msgspec.Struct, kw_only=True, frozen=True):
    """Why a job is not running, the most decisive reason first."""

    id: str
    status: Status
    reasons: list[WhyNot]


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
    started_at: datetime
    finished_at: datetime | None
    error: AttemptError | None


class Attempts(msgspec.Struct, kw_only=True, frozen=True):
    """The attempts of a job, oldest first."""

    attempts: list[AttemptShape]


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


class DeadDone(msgspec.Struct, kw_only=True, frozen=True):
    """What was done to dead letters, or would be."""

    dry_run: bool
    done: int
    """To how many it was done."""
    ids: list[str]
    """Those that were chosen, the newest first."""
    left: int
    """How many the filter still means now, among the newest 10,000 dead letters."""
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


def job(record: JobRecord) -> Job:
    """Give the thin form of a job."""
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
        started_at=maybe_instant(record.claimed_at_ms),
        finished_at=maybe_instant(record.finished_at_ms) if record.state in TERMINAL else None,
        result=plain(record.result),
        result_note=record.result_note,
        reason=record.reason,
        error=error_summary(record.error),
    )


def why_not(reason: Reason) -> WhyNot:
    """Give one reason why a job is not running."""
    return WhyNot(
        why=reason.why.value,
        text=reason.text,
        until=maybe_instant(reason.until_ms),
        count=reason.count,
        note=note(reason.mark),
    )


def attempt(found: Attempt) -> AttemptShape:
    """Give one attempt."""
    return AttemptShape(
        generation=found.generation,
        number=found.number,
        lease=found.lease,
        outcome=found.outcome,
        worker=found.worker,
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
    """Give one line of a log; when it was is said if its attempt is known."""
    known = of is not None and 0 <= found.at_ms <= _LONGEST_RUN_MS
    at = instant(of.started_at_ms + found.at_ms) if of is not None and known else None
    return LogLine(lease=lease, number=found.number, at=at, level=found.level, text=found.text)


def job_type(row: TypeRow) -> JobType:
    """Give one version of a job type."""
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


def queue(found: QueueInfo) -> Queue:
    """Give a queue."""
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
        hold=note(found.held),
    )


def tenant(found: TenantInfo) -> Tenant:
    """Give a tenant."""
    return Tenant(
        name=found.name,
        weight=found.weight,
        waiting=found.waiting,
        running=found.running,
        held=found.held is not None,
        hold=note(found.held),
    )


def dead_group(found: DeadLetters) -> DeadGroup:
    """Give dead letters with one cause; their frames stay with the operators of the store."""
    return DeadGroup(
        fingerprint=found.fingerprint,
        type=found.type,
        queue=found.queue,
        count=found.count,
        newest_at=instant(found.newest_at_ms),
        example=found.example,
        reason=found.reason,
        error=error_summary(found.error),
    )


def worker(found: WorkerInfo) -> Worker:
    """Give a worker."""
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


def instant(at_ms: int) -> datetime:
    """Give an instant, in UTC."""
    return datetime.fromtimestamp(min(max(at_ms, 0), _LAST_MS) / 1000, UTC)


def maybe_instant(at_ms: int | None) -> datetime | None:
    """Give an instant, if there is one."""
    return None if at_ms is None else instant(at_ms)


def error_summary(found: ErrorInfo | None) -> ErrorSummary | None:
    """Give what callers see of an error."""
    return None if found is None else ErrorSummary(type=found.type, message=found.message)


def note(mark: Mark | None) -> Note | None:
    """Give who did it, why and when."""
    return None if mark is None else Note(by=mark.by, reason=mark.reason, at=instant(mark.at_ms))


def plain(written: bytes | None) -> Any:
    """Read stored JSON; bytes that are none are shown as text."""
    if written is None:
        return None
    try:
        return payload.plain(written)
    except (ValueError, RecursionError):
        return written.decode(errors="replace")
