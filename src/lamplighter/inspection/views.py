"""Public values of what is in the store: instants with a zone, durations in seconds, plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lamplighter.model.job import Attempt, ErrorInfo, JobRecord, Mark, Status
from lamplighter.model.journal import Line, Progress
from lamplighter.model.timetable import moment
from lamplighter.port.values import DeadGroup, QueueInfo, TenantInfo, TypeRow, WorkerInfo
from lamplighter.secrecy import concealed


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Who held or cancelled something, why and when."""

    by: str
    """Name of the person or program."""
    reason: str
    """What they said to it; may be empty."""
    at: datetime
    """When, in UTC."""

    @classmethod
    def of(cls, mark: Mark | None) -> Note | None:
        """Return the public form of a mark; None stays None."""
        return None if mark is None else cls(by=mark.by, reason=mark.reason, at=moment(mark.at_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as it stands in the store."""

    id: str
    """Its id, a ULID."""
    type: str
    """Name of its job type."""
    status: Status
    """Where it stands."""
    queue: str
    """The queue it waits in."""
    priority: str
    """`critical`, `high`, `normal` or `low`."""
    tenant: str
    """On whose behalf it runs."""
    schedule: str | None
    """Id of the schedule that made it."""
    arguments: object
    """A dict by parameter name; secret arguments are replaced by `•••`."""
    tags: tuple[str, ...]
    """Names to find it by."""
    metadata: Mapping[str, object]
    """What the submission carried beside the arguments."""
    created_at: datetime
    """When it was submitted."""
    due_at: datetime
    """When it is due, or was for its last attempt."""
    started_at: datetime | None
    """When it was last handed to a worker."""
    finished_at: datetime | None
    """When it ended; None before."""
    failed_attempts: int
    """How often its handler has failed in this generation."""
    generation: int
    """How often it was replayed."""
    worker: str | None
    """The worker of its last attempt."""
    progress: Progress | None
    """What its last attempt said about how far it had come."""
    hold: Note | None
    """Who holds it, why and since when; None: nobody."""
    cancel: Note | None
    """Who asked for its end; None: nobody."""
    reason: str | None
    """Why it is dead or cancelled."""
    result: object
    """What its handler returned, as plain data."""
    result_note: str | None
    """Why there is no result although it succeeded."""
    error: ErrorInfo | None
    """Why its last attempt failed."""

    @classmethod
    def of(cls, record: JobRecord) -> JobView:
        """Return the public form of a record."""
        job = record.job
        return cls(
            id=job.id,
            type=job.type,
            status=record.status,
            queue=job.queue,
            priority=job.level.label,
            tenant=job.tenant,
            schedule=job.schedule,
            arguments=_plain(concealed(job.args, job.extras.secrets)),
            tags=tuple(job.extras.tags),
            metadata=dict(job.extras.metadata),
            created_at=moment(job.created_at_ms),
            due_at=moment(job.due_at_ms),
            started_at=None if record.status is Status.CLAIMED else _moment(record.claimed_at_ms),
            finished_at=_moment(record.finished_at_ms),
            failed_attempts=job.attempt,
            generation=job.generation,
            worker=record.worker,
            progress=record.progress,
            hold=Note.of(record.hold),
            cancel=Note.of(record.cancel),
            reason=record.reason,
            result=None if record.result is None else _plain(record.result),
            result_note=record.result_note,
            error=record.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt to run a job."""

    number: int
    """Number of the attempt by the handler's own failures, from 1."""
    generation: int
    """How often the job had been replayed before."""
    lease: int
    """Names the attempt in the log."""
    outcome: str
    """`running` while it has not ended."""
    worker: str
    """Id of the worker that ran it."""
    started_at: datetime
    """When it was handed to the worker."""
    finished_at: datetime | None
    """When it ended; None while it runs."""
    error: ErrorInfo | None
    """Why it failed; None if it did not."""

    @classmethod
    def of(cls, attempt: Attempt) -> AttemptView:
        """Return the public form of an attempt."""
        return cls(
            number=attempt.number,
            generation=attempt.generation,
            lease=attempt.lease,
            outcome=attempt.outcome,
            worker=attempt.worker,
            started_at=moment(attempt.started_at_ms),
            finished_at=_moment(attempt.finished_at_ms),
            error=attempt.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that an attempt logged or printed."""

    lease: int
    """The attempt, as in `AttemptView.lease`."""
    number: int
    """Place in the attempt's log, from 0; missing numbers were cut."""
    after: float
    """Seconds since the handler began."""
    level: str
    """Level of a log record in small letters, or `out` and `err` for what was printed."""
    text: str
    """What was logged or printed."""

    @classmethod
    def of(cls, line: Line, lease: int) -> LogLine:
        """Return the public form of a line."""
        return cls(
            lease=lease,
            number=line.number,
            after=line.at_ms / 1000,
            level=line.level,
            text=line.text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterCause:
    """Dead letters of one type that died of the same error."""

    fingerprint: str
    """The same for failures of the same cause."""
    type: str
    """Job type of all of them."""
    queue: str
    """Queue of the newest."""
    count: int
    """How many there are."""
    at_least: bool
    """Whether older dead letters were not looked at, so that there may be more than ``count``."""
    newest_at: datetime
    """When the newest ended."""
    example: str
    """Id of the newest of these jobs."""
    reason: str
    """Why the newest is dead."""
    error: ErrorInfo | None
    """The error of the newest."""

    @classmethod
    def of(cls, group: DeadGroup, *, at_least: bool) -> DeadLetterCause:
        """Return the public form of a group."""
        return cls(
            fingerprint=group.fingerprint,
            type=group.type,
            queue=group.queue,
            count=group.count,
            at_least=at_least,
            newest_at=moment(group.newest_at_ms),
            example=group.example,
            reason=group.reason,
            error=group.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantView:
    """A tenant: its share of the workers, and what it has in the store."""

    name: str
    """Its name."""
    weight: int
    """Its share of the workers relative to others, 1 to 1,000."""
    waiting: int
    """Jobs that wait, due or not, without held ones; 10,000 means: at least."""
    running: int
    """Jobs that workers have."""
    hold: Note | None
    """Who holds it, why and since when; None: nobody."""

    @classmethod
    def of(cls, found: TenantInfo) -> TenantView:
        """Return the public form of a tenant."""
        return cls(
            name=found.name,
            weight=found.weight,
            waiting=found.waiting,
            running=found.running,
            hold=Note.of(found.held),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue; counts are exact up to 10,000, then they mean: at least."""

    name: str
    """Its name."""
    ready: int
    """Jobs that are due."""
    scheduled: int
    """Jobs that are due later."""
    running: int
    """Jobs that workers have."""
    oldest_due: float | None
    """Seconds since the job that waits longest was due."""
    max_wait: float
    """Seconds after which a job of low priority goes first."""
    hold: Note | None
    """Who holds it, why and since when; None: nobody."""

    @classmethod
    def of(cls, found: QueueInfo) -> QueueView:
        """Return the public form of a queue."""
        oldest = found.oldest_due_ms
        return cls(
            name=found.name,
            ready=found.ready,
            scheduled=found.scheduled,
            running=found.running,
            oldest_due=None if oldest is None else oldest / 1000,
            max_wait=found.max_wait_ms / 1000,
            hold=Note.of(found.held),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeView:
    """One published version of a job type."""

    name: str
    """Name of the job type."""
    queue: str
    """Queue its jobs go to by default."""
    schema: object
    """JSON Schema of its arguments."""
    options: Mapping[str, object]
    """Options it was registered with, by name."""
    live_workers: int
    """Live workers that have this version."""
    hold: Note | None
    """Who holds it, why and since when; None: nobody."""

    @classmethod
    def of(cls, found: TypeRow) -> TypeView:
        """Return the public form of a version."""
        return cls(
            name=found.name,
            queue=found.queue,
            schema=_plain(found.schema.encode()),
            options=dict(found.options),
            live_workers=found.live_workers,
            hold=Note.of(found.held),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A worker that has joined."""

    id: str
    """Its id; a new one each time it starts."""
    host: str
    """Name of its machine."""
    pid: int
    """Process id of its supervisor."""
    state: str
    """`alive`, `suspect` (15 s without a heartbeat) or `dead` (30 s)."""
    queues: tuple[str, ...]
    """Queues it takes jobs from."""
    types: tuple[str, ...]
    """Job types it knows."""
    slots: int
    """Jobs it runs at once at most."""
    running: int
    """Jobs it has at present."""
    joined_at: datetime
    """When it started."""
    heartbeat_at: datetime
    """When it gave its last sign of life."""

    @classmethod
    def of(cls, found: WorkerInfo) -> WorkerView:
        """Return the public form of a worker."""
        return cls(
            id=found.id,
            host=found.host,
            pid=found.pid,
            state=found.state,
            queues=found.queues,
            types=found.types,
            slots=found.slots,
            running=found.running,
            joined_at=moment(found.joined_at_ms),
            heartbeat_at=moment(found.beat_at_ms),
        )


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else moment(at_ms)


def _plain(written: bytes) -> object:
    """Read stored JSON; bytes that are none are returned as text."""
    try:
        return json.loads(written)
    except ValueError:
        return written.decode(errors="replace")
