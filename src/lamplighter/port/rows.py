"""Values from rows: the columns that engines with tables read in the same order.

Which columns those are, and in which order, stands in `model/fields.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from lamplighter.model import fields
from lamplighter.model.job import (
    NO_EXTRAS,
    Attempt,
    Claim,
    Delivery,
    Fence,
    Job,
    JobRecord,
    JobState,
    Level,
    NewJob,
    status_of,
)
from lamplighter.model.stride import DEFAULT_WEIGHT
from lamplighter.port import texts
from lamplighter.port.access import AuditEntry, AuditRecord, TokenRecord
from lamplighter.port.schedules import RunKind, RunRecord, RunState, ScheduleRecord
from lamplighter.port.values import TenantInfo

__all__ = [
    "SCHEDULE_WIDTH",
    "attempt_of",
    "audit_of",
    "claim_of",
    "job_of",
    "record_of",
    "row_of",
    "run_of",
    "schedule_of",
    "stored_record_of",
    "tenant_of",
    "token_of",
]

SCHEDULE_WIDTH = len(fields.SCHEDULE)
"""How many columns `schedule_of` reads; statements list them first."""
_JOB = len(fields.JOB)
_CLAIM = _JOB + len(fields.CLAIM)
_AT_MOST_ONCE = Delivery.AT_MOST_ONCE.value


class Lane(Protocol):
    """What a job shares with those that are interchangeable with it."""

    @property
    def queue(self) -> str: ...
    @property
    def level(self) -> Level: ...
    @property
    def type(self) -> str: ...


def row_of(job: NewJob, *, created: int, due: int) -> tuple[Any, ...]:
    """Write what was submitted, as the columns of `SUBMITTED`."""
    return (
        job.id,
        job.tenant,
        due,
        created,
        job.args,
        texts.extras_to_text(job.extras),
        _AT_MOST_ONCE if job.delivery is Delivery.AT_MOST_ONCE else None,
        job.cost,
        job.schedule,
    )


def job_of(row: Sequence[Any], lane: Lane) -> Job:
    """Build a Job from the columns of `JOB`, which come first, and its lane."""
    (
        id_, tenant, due, created, args, extras, delivery, cost, schedule,
        attempt, crashes, losses, suspect,
        generation,
    ) = row[:_JOB]  # fmt: skip
    return Job(
        id=id_,
        type=lane.type,
        args=args,
        queue=lane.queue,
        level=lane.level,
        tenant=tenant,
        due_at_ms=due,
        created_at_ms=created,
        delivery=Delivery.AT_MOST_ONCE if delivery == _AT_MOST_ONCE else Delivery.AT_LEAST_ONCE,
        extras=NO_EXTRAS if extras is None else texts.extras_of(extras),
        attempt=attempt,
        crashes=crashes,
        losses=losses,
        suspect=bool(suspect),
        generation=generation,
        cost=cost,
        schedule=schedule,
    )


def claim_of(row: Sequence[Any], lane: Lane) -> Claim:
    """Build a Claim from the columns of `JOB` and `CLAIM` of a job that is running, and whether its
    start was marked.
    """
    lease, nonce, worker, handout = row[_JOB:_CLAIM]
    return Claim(
        job=job_of(row, lane),
        fence=Fence(lease, nonce),
        worker=worker,
        handout=handout,
        started=bool(row[_CLAIM]),
    )


def stored_record_of(row: Sequence[Any], lane: Lane, now: int) -> JobRecord:
    """Build a record from the columns of `JOB`, `CLAIM` and `RECORD`, the progress, and whether its
    handler was called, as far as is known.
    """
    return record_of(job_of(row, lane), row[_JOB:_CLAIM], row[_CLAIM:], now)


def record_of(job: Job, claim: Sequence[Any], story: Sequence[Any], now: int) -> JobRecord:
    """Build a record.

    ``claim`` has the columns of `CLAIM`; ``story`` those of `RECORD`, the progress, and whether its
    handler was called, as far as is known.
    """
    state = JobState(story[0])
    hold, cancel = texts.mark_of(story[1]), texts.mark_of(story[2])
    return JobRecord(
        job=job,
        state=state,
        status=status_of(
            state,
            due=job.due_at_ms <= now,
            attempt=job.attempt,
            held=hold is not None,
            cancel_requested=cancel is not None,
            started=bool(story[11]),
        ),
        lease=claim[0],
        nonce=claim[1],
        worker=claim[2],
        handout=claim[3],
        hold=hold,
        cancel=cancel,
        claimed_at_ms=story[3],
        expires_at_ms=story[4],
        finished_at_ms=story[5],
        reason=story[6],
        result=story[7],
        result_note=story[8],
        error=texts.error_of(story[9]),
        progress=texts.progress_of(story[10]),
    )


def attempt_of(row: Sequence[Any]) -> Attempt:
    """Build an attempt from the columns of `ATTEMPT`."""
    return Attempt(
        job_id=row[0],
        generation=row[1],
        lease=row[2],
        number=row[3],
        worker=row[4],
        outcome=row[5],
        started_at_ms=row[6],
        finished_at_ms=row[7],
        error=texts.error_of(row[8]),
        nonce=row[9],
    )


def schedule_of(row: Sequence[Any]) -> ScheduleRecord:
    """Build a schedule from the columns of `SCHEDULE`, which come first."""
    return ScheduleRecord(
        id=row[0],
        spec=row[1],
        tenant=row[2],
        type=row[3],
        version=row[4],
        cursor_ms=row[5],
        due_ms=row[6],
        created_at_ms=row[7],
        changed_at_ms=row[8],
        fired=row[9],
        skipped=row[10],
        failures=row[11],
        last_due_ms=row[12],
        last_job=row[13],
        hold=texts.mark_of(row[14]),
        backfill=texts.backfill_of(row[15]),
        zones=row[16],
    )


def run_of(row: Sequence[Any], schedule: str) -> RunRecord:
    """Build a run from the columns of `RUN` and when its job was claimed."""
    due, kind, state, at, job_id, reason, first, count, finished, started = row
    return RunRecord(
        schedule=schedule,
        due_ms=due,
        kind=RunKind(kind),
        state=RunState(state),
        at_ms=at,
        job_id=job_id,
        reason=reason,
        first_ms=first,
        count=count,
        finished_at_ms=finished,
        started_at_ms=started,
    )


def tenant_of(name: str, row: Sequence[Any]) -> TenantInfo | None:
    """Build a tenant from weight, hold, waiting and running jobs; None: it has nothing.

    Without settings there is no weight.
    """
    weight, hold, waiting, running = row
    if weight is None and not waiting and not running:
        return None
    return TenantInfo(
        name=name,
        weight=DEFAULT_WEIGHT if weight is None else weight,
        held=texts.mark_of(hold),
        waiting=waiting,
        running=running,
    )


def token_of(row: Sequence[Any], now: int) -> TokenRecord:
    """Build a token from prefix, digest, name, scopes, tenant, created, by whom, expires and the
    mark of who revoked it.
    """
    expires = row[7]
    return TokenRecord(
        prefix=row[0],
        digest=row[1],
        name=row[2],
        scopes=tuple(row[3].split()),
        tenant=row[4],
        created_at_ms=row[5],
        created_by=row[6],
        expires_at_ms=expires,
        left_ms=None if expires is None else max(0, expires - now),
        revoked=texts.mark_of(row[8]),
    )


def audit_of(row: Sequence[Any]) -> AuditRecord:
    """Build an audit entry from its place, id, when, who, action, object, answer, tenant, why."""
    entry = AuditEntry(
        id=row[1],
        by=row[3],
        action=row[4],
        object=row[5],
        answer=row[6],
        tenant=row[7],
        reason=row[8],
    )
    return AuditRecord(row[2], entry)
