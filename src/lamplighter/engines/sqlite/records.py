"""Rows to values and back. Text columns that hold JSON are read and written only here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lamplighter.model.job import (
    NO_EXTRAS,
    Attempt,
    Claim,
    Delivery,
    ErrorInfo,
    Extras,
    Fence,
    Job,
    JobRecord,
    JobState,
    Mark,
    status_of,
)
from lamplighter.model.journal import Progress
from lamplighter.model.retry import Retry

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.catalog import Lane
    from lamplighter.engines.sqlite.transaction import Row

_AT_MOST_ONCE = Delivery.AT_MOST_ONCE.value


def clean(text: str) -> str:
    """Make any text storable: lone surrogates are replaced, NULs dropped."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def extras_to_text(extras: Extras) -> str | None:
    """Give the stored form, or None when there is nothing to store."""
    if extras is NO_EXTRAS:
        return None
    values: dict[str, Any] = {}
    if extras.retry is not None:
        values["retry"] = extras.retry.to_json()
    if extras.timeout is not None:
        values["timeout"] = extras.timeout
    if extras.tags:
        values["tags"] = extras.tags
    if extras.metadata:
        values["metadata"] = dict(extras.metadata)
    if extras.secrets:
        values["secrets"] = extras.secrets
    return json.dumps(values) if values else None


def extras_of(text: str | None) -> Extras:
    """Read the stored form. What cannot be read counts as not given.

    One such row must not keep a claim or a rescue from all the others.
    """
    if text is None:
        return NO_EXTRAS
    try:
        values = json.loads(text)
        return Extras(
            retry=Retry.from_json(values["retry"]) if "retry" in values else None,
            timeout=values.get("timeout"),
            tags=tuple(values.get("tags", ())),
            metadata=values.get("metadata", {}),
            secrets=tuple(values.get("secrets", ())),
        )
    except (ValueError, TypeError, AttributeError, KeyError):
        return NO_EXTRAS


def mark_to_text(by: str, reason: str, now: int) -> str:
    """Write who did something, why and when."""
    return json.dumps({"by": clean(by), "reason": clean(reason), "at": now})


def mark_of(text: str | None) -> Mark | None:
    """Read who did something, why and when."""
    if text is None:
        return None
    try:
        values = json.loads(text)
        return Mark(by=values["by"], reason=values["reason"], at_ms=values["at"])
    except (ValueError, TypeError, KeyError):
        return Mark(by="unknown", reason=text, at_ms=0)


def error_to_text(error: ErrorInfo | None) -> str | None:
    """Write an error; any content can be stored."""
    if error is None:
        return None
    return json.dumps(
        {
            "type": clean(error.type),
            "message": clean(error.message),
            "traceback": clean(error.traceback),
            "fingerprint": clean(error.fingerprint),
            "kinds": [clean(kind) for kind in error.kinds],
        },
    )


def error_of(text: str | None) -> ErrorInfo | None:
    """Read an error."""
    if text is None:
        return None
    try:
        values = json.loads(text)
        return ErrorInfo(
            type=values["type"],
            message=values["message"],
            traceback=values.get("traceback", ""),
            fingerprint=values.get("fingerprint", ""),
            kinds=tuple(values.get("kinds", ())),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return ErrorInfo(type="Unreadable", message=text)


def progress_to_text(progress: Progress) -> str:
    """Write how far an attempt has come."""
    return json.dumps([progress.done, progress.total, clean(progress.note)])


def progress_of(text: str | None) -> Progress | None:
    """Read how far an attempt has come; what cannot be read says nothing."""
    if text is None:
        return None
    try:
        done, total, note = json.loads(text)
    except (ValueError, TypeError):
        return None
    return Progress(done=done, total=total, note=note)


# Columns 0-14 of every statement that reads jobs for a claim; see `claim.sql`.
def claimed_job(row: Row, lane: Lane) -> Job:
    """Build a Job from the columns all claim statements read in the same order."""
    return Job(
        id=row[1],
        type=lane.type,
        args=row[3],
        queue=lane.queue,
        level=lane.level,
        tenant=row[4],
        due_at_ms=row[2],
        created_at_ms=row[5],
        delivery=Delivery.AT_MOST_ONCE if row[6] == _AT_MOST_ONCE else Delivery.AT_LEAST_ONCE,
        extras=NO_EXTRAS if row[7] is None else extras_of(row[7]),
        attempt=row[8],
        crashes=row[9],
        losses=row[10],
        suspect=bool(row[11]),
        generation=row[12],
        cost=row[13],
        schedule=row[14],
    )


def held_claim(row: Row, lane: Lane) -> Claim:
    """Build a Claim from a row of a job that is running."""
    return Claim(
        job=claimed_job(row, lane),
        fence=Fence(row[15], row[16]),
        worker=row[17],
        handout=row[18],
    )


def job_record(row: Row, lane: Lane, now: int) -> JobRecord:
    """Build the full record from the columns of `inspect.sql`."""
    job = claimed_job(row, lane)
    state = JobState(row[20])
    hold, cancel = mark_of(row[21]), mark_of(row[22])
    return JobRecord(
        job=job,
        state=state,
        status=status_of(
            state,
            due=job.due_at_ms <= now,
            attempt=job.attempt,
            held=hold is not None,
            cancel_requested=cancel is not None,
        ),
        lease=row[15],
        nonce=row[16],
        worker=row[17],
        handout=row[18],
        claimed_at_ms=row[23],
        expires_at_ms=row[24],
        finished_at_ms=row[25],
        hold=hold,
        cancel=cancel,
        reason=row[26],
        result=row[27],
        result_note=row[28],
        error=error_of(row[29]),
        progress=progress_of(row[30]),
    )


def attempt_of(row: Row) -> Attempt:
    """Build an Attempt from the columns of `inspect.sql`."""
    return Attempt(
        job_id=row[0],
        generation=row[1],
        lease=row[2],
        number=row[3],
        worker=row[4],
        outcome=row[5],
        started_at_ms=row[6],
        finished_at_ms=row[7],
        error=error_of(row[8]),
        nonce=row[9],
    )
