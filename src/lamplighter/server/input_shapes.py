"""What callers get of a job's input: what it was given, and how it is to be run."""

from __future__ import annotations

from typing import Any

import msgspec

from lamplighter.model.job import Delivery, JobRecord
from lamplighter.model.retry import Retry
from lamplighter.secrecy import concealed
from lamplighter.server.auth import Principal
from lamplighter.server.marks import Note, note
from lamplighter.server.shapes import ProgressShape, plain, progress
from lamplighter.server.submission import RetryPolicy


class JobInput(msgspec.Struct, kw_only=True, frozen=True):
    """What a job was given and how it is to be run."""

    id: str
    arguments: Any
    """By name, without those that are secret."""
    metadata: dict[str, Any]
    tags: list[str]
    priority: str
    """`critical`, `high`, `normal` or `low`."""
    delivery: Delivery
    """What becomes of it if nobody sees the end of an attempt."""
    timeout: float | None
    """Seconds its handler has; null: what its type says."""
    retry: RetryPolicy | None
    """Null: what its type says."""
    schedule: str | None
    """Id of the schedule that made it."""
    progress: ProgressShape | None
    hold: Note | None
    """Who holds it, and why."""
    cancel: Note | None
    """Who asked for its end, and why."""


def job_input(record: JobRecord, principal: Principal) -> JobInput:
    """Return what a job was given."""
    job, extras = record.job, record.job.extras
    return JobInput(
        id=job.id,
        arguments=plain(concealed(job.args, extras.secrets)),
        metadata=dict(extras.metadata),
        tags=list(extras.tags),
        priority=job.level.label,
        delivery=job.delivery,
        timeout=extras.timeout,
        retry=None if extras.retry is None else _retry(extras.retry),
        schedule=job.schedule,
        progress=progress(record.progress),
        hold=note(record.hold, principal),
        cancel=note(record.cancel, principal),
    )


def _retry(policy: Retry) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=policy.max_attempts,
        delays=None if policy.delays is None else list(policy.delays),
        fixed=policy.fixed,
        base=policy.base,
        factor=policy.factor,
        cap=policy.cap,
        jitter=policy.jitter,
        no_retry_on=list(policy.no_retry_on),
    )
