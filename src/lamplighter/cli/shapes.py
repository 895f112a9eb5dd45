"""What programs get: the store's values as plain JSON data. Keys stay as they are."""

from __future__ import annotations

import json

from lamplighter.cli.output import instant
from lamplighter.model.job import Attempt, ErrorInfo, JobRecord, Mark
from lamplighter.model.journal import Line, Progress
from lamplighter.port.values import (
    Changed,
    DeadGroup,
    Explanation,
    QueueInfo,
    TenantInfo,
    TypeRow,
    WorkerInfo,
)
from lamplighter.secrecy import concealed

Shape = dict[str, object]

_LONGEST_RUN_MS = 100 * 365 * 86_400_000
"""Whatever says more is no time since the beginning of a run."""


def job(record: JobRecord) -> Shape:
    """Everything about a job but its history."""
    job = record.job
    return {
        "id": job.id,
        "type": job.type,
        "status": record.status.value,
        "state": record.state.value,
        "queue": job.queue,
        "priority": job.level.label,
        "tenant": job.tenant,
        "schedule": job.schedule,
        "arguments": arguments(record),
        "created_at": instant(job.created_at_ms),
        "due_at": instant(job.due_at_ms),
        "claimed_at": instant(record.claimed_at_ms),
        "lease_ends_at": instant(record.expires_at_ms),
        "finished_at": instant(record.finished_at_ms),
        "failed_attempts": job.attempt,
        "crashes": job.crashes,
        "losses": job.losses,
        "generation": job.generation,
        "delivery": job.delivery.value,
        "timeout": job.extras.timeout,
        "tags": list(job.extras.tags),
        "metadata": dict(job.extras.metadata),
        "worker": record.worker,
        "progress": progress(record.progress),
        "hold": mark(record.hold),
        "cancel": mark(record.cancel),
        "reason": record.reason,
        "result": plain(record.result),
        "result_note": record.result_note,
        "error": error(record.error),
    }


def arguments(record: JobRecord) -> object:
    """Return a job's arguments without those that are secret."""
    return plain(concealed(record.job.args, record.job.extras.secrets))


def progress(found: Progress | None) -> Shape | None:
    """How far a job has come."""
    if found is None:
        return None
    return {"done": found.done, "total": found.total, "note": found.note}


def attempt(found: Attempt) -> Shape:
    """One attempt; `finished_at` is null while it runs."""
    ended = found.finished_at_ms
    return {
        "generation": found.generation,
        "number": found.number,
        "lease": found.lease,
        "outcome": found.outcome,
        "worker": found.worker,
        "host": found.host,
        "started_at": instant(found.started_at_ms),
        "finished_at": instant(ended),
        "seconds": None if ended is None else (ended - found.started_at_ms) / 1000,
        "error": error(found.error),
    }


def line(found: Line, lease: int, of: Attempt | None) -> Shape:
    """One line of a log; what is not known of its attempt is null."""
    return {
        "lease": lease,
        "attempt": None if of is None else of.number,
        "number": found.number,
        "at": line_instant(found, of),
        "after_seconds": found.at_ms / 1000,
        "level": found.level,
        "text": found.text,
    }


def line_instant(found: Line, of: Attempt | None) -> str | None:
    """When a line was written, by the clock of the store, if that can be said."""
    if of is None or not 0 <= found.at_ms <= _LONGEST_RUN_MS:
        return None
    return instant(of.started_at_ms + found.at_ms)


def error(found: ErrorInfo | None) -> Shape | None:
    """What went wrong."""
    if found is None:
        return None
    return {
        "type": found.type,
        "message": found.message,
        "fingerprint": found.fingerprint,
        "traceback": found.traceback,
    }


def mark(found: Mark | None) -> Shape | None:
    """Who did it, why and when."""
    if found is None:
        return None
    return {"by": found.by, "reason": found.reason, "at": instant(found.at_ms)}


def changed(answer: Changed) -> Shape:
    """The answer to one operator's wish."""
    state = None if answer.state is None else answer.state.value
    return {"id": answer.id, "answer": answer.answer.value, "state": state}


def explanation(found: Explanation) -> Shape:
    """Why a job is not running."""
    return {
        "id": found.record.job.id,
        "type": found.record.job.type,
        "status": found.record.status.value,
        "reasons": [
            {
                "why": reason.why.value,
                "text": reason.text,
                "until": instant(reason.until_ms),
                "count": reason.count,
                "mark": mark(reason.mark),
            }
            for reason in found.reasons
        ],
    }


def dead_group(group: DeadGroup) -> Shape:
    """Dead letters with one cause."""
    return {
        "fingerprint": group.fingerprint,
        "type": group.type,
        "queue": group.queue,
        "count": group.count,
        "newest_at": instant(group.newest_at_ms),
        "example": group.example,
        "reason": group.reason,
        "error": error(group.error),
    }


def queue(found: QueueInfo) -> Shape:
    """A queue."""
    return {
        "name": found.name,
        "ready": found.ready,
        "scheduled": found.scheduled,
        "running": found.running,
        "waiting_by_priority": {level.label: number for level, number in found.by_level.items()},
        "oldest_due_seconds": _seconds(found.oldest_due_ms),
        "max_wait_seconds": _seconds(found.max_wait_ms),
        "handouts": found.handouts,
        "hold": mark(found.held),
    }


def tenant(found: TenantInfo) -> Shape:
    """A tenant."""
    return {
        "name": found.name,
        "weight": found.weight,
        "waiting": found.waiting,
        "running": found.running,
        "hold": mark(found.held),
    }


def job_type(found: TypeRow) -> Shape:
    """One version of a job type."""
    return {
        "name": found.name,
        "queue": found.queue,
        "hash": found.hash,
        "live_workers": found.live_workers,
        "options": dict(found.options),
        "schema": plain(found.schema.encode()),
        "hold": mark(found.held),
    }


def worker(found: WorkerInfo) -> Shape:
    """A worker."""
    return {
        "id": found.id,
        "host": found.host,
        "pid": found.pid,
        "state": found.state,
        "queues": list(found.queues),
        "types": list(found.types),
        "slots": found.slots,
        "running": found.running,
        "joined_at": instant(found.joined_at_ms),
        "beat_at": instant(found.beat_at_ms),
    }


def plain(written: bytes | None) -> object:
    """Read stored JSON; bytes that are none are shown as text."""
    if written is None:
        return None
    try:
        return json.loads(written)
    except ValueError:
        return written.decode(errors="replace")


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
