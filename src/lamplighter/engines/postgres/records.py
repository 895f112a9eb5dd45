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
    Fence,
    Job,
    JobRecord,
    JobState,
    Level,
    status_of,
)
from lamplighter.port import texts

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


def mark_to_text(by: str, reason: str) -> str:
    """Write who did something and why; the verb adds when: ``mark_at(text, now_)`` in SQL."""
    return json.dumps({"by": texts.clean(by), "reason": texts.clean(reason)})


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
        extras=NO_EXTRAS if row[9] is None else texts.extras_of(row[9]),
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
    hold, cancel = texts.mark_of(row[22]), texts.mark_of(row[23])
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
        error=texts.error_of(row[30]),
        progress=texts.progress_of(row[31]),
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
        error=texts.error_of(row[8]),
        nonce=row[9],
    )
