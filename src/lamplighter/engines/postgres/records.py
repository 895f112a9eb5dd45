"""Rows to values and back. Text columns that hold JSON are read and written only here.

Statements that read jobs list these columns first, in this order, so that one function reads them
all: `JOB` for a Job, `JOB` and `CLAIM` for a Claim, all three for a JobRecord.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

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
    Level,
    Mark,
    status_of,
)
from lamplighter.model.journal import Progress
from lamplighter.model.retry import Retry

JOB = [
    "id",
    "type",
    "args",
    "queue",
    "level",
    "tenant",
    "due",
    "created",
    "delivery",
    "extras",
    "attempt",
    "crashes",
    "losses",
    "suspect",
    "generation",
    "cost",
    "schedule",
]
CLAIM = ["lease", "nonce", "worker", "handout"]
RECORD = [
    "state",
    "hold",
    "cancel",
    "claimed",
    "expires",
    "finished",
    "reason",
    "result",
    "result_note",
    "error",
    "progress",
]
ATTEMPT = [
    "job_id",
    "generation",
    "lease",
    "number",
    "worker",
    "outcome",
    "started",
    "finished",
    "error",
    "nonce",
]

LEVELS = {level.value: level for level in Level}
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


def mark_to_text(by: str, reason: str) -> str:
    """Write who did something and why; the verb adds when: ``mark_at(text, now_)`` in SQL."""
    return json.dumps({"by": clean(by), "reason": clean(reason)})


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


def job_of(row: Sequence[Any]) -> Job:
    """Build a Job from the columns of `JOB`."""
    return Job(
        id=row[0],
        type=row[1],
        args=row[2],
        queue=row[3],
        level=LEVELS[row[4]],
        tenant=row[5],
        due_at_ms=row[6],
        created_at_ms=row[7],
        delivery=Delivery.AT_MOST_ONCE if row[8] == _AT_MOST_ONCE else Delivery.AT_LEAST_ONCE,
        extras=NO_EXTRAS if row[9] is None else extras_of(row[9]),
        attempt=row[10],
        crashes=row[11],
        losses=row[12],
        suspect=row[13],
        generation=row[14],
        cost=row[15],
        schedule=row[16],
    )


def claim_of(row: Sequence[Any]) -> Claim:
    """Build a Claim from the columns of `JOB` and `CLAIM` of a job that is running."""
    return Claim(job=job_of(row), fence=Fence(row[17], row[18]), worker=row[19], handout=row[20])


def record_of(row: Sequence[Any], now: int) -> JobRecord:
    """Build the full record from the columns of `JOB`, `CLAIM` and `RECORD`."""
    job = job_of(row)
    state = JobState(row[21])
    hold, cancel = mark_of(row[22]), mark_of(row[23])
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
        lease=row[17],
        nonce=row[18],
        worker=row[19],
        handout=row[20],
        claimed_at_ms=row[24],
        expires_at_ms=row[25],
        finished_at_ms=row[26],
        hold=hold,
        cancel=cancel,
        reason=row[27],
        result=row[28],
        result_note=row[29],
        error=error_of(row[30]),
        progress=progress_of(row[31]),
    )


def attempt_of(row: Sequence[Any]) -> Attempt:
    """Build an Attempt from the columns of `ATTEMPT`."""
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
