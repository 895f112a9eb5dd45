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
    Claim,
    Delivery,
    Fence,
    Job,
    JobRecord,
    Level,
)
from lamplighter.port import rows, texts

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
    "started",
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


def claimed_job(row: Sequence[Any], job_id: str, lane: tuple[Any, ...]) -> Job:
    """Build a Job from a row of `claim` and the names of its lane: queue, level and type."""
    queue, level, type_ = lane
    return Job(
        id=job_id,
        type=type_,
        args=row[7],
        queue=queue,
        level=LEVELS[level],
        tenant=row[4],
        due_at_ms=row[5],
        created_at_ms=row[6],
        delivery=Delivery.AT_LEAST_ONCE if row[9] is None else Delivery(row[9]),
        extras=NO_EXTRAS if row[8] is None else texts.extras_of(row[8]),
        cost=row[10],
        schedule=row[11],
        generation=row[12],
        attempt=row[14],
        crashes=row[15],
        losses=row[16],
        suspect=row[17],
    )


def claim_of(row: Sequence[Any]) -> Claim:
    """Build a Claim from the columns of `JOB` and `CLAIM` of a job that is running, and whether its
    start was marked.
    """
    return Claim(
        job=job_of(row),
        fence=Fence(row[17], row[18]),
        worker=row[19],
        handout=row[20],
        started=row[21],
    )


def record_of(row: Sequence[Any], now: int) -> JobRecord:
    """Build the full record from the columns of `JOB`, `CLAIM` and `RECORD`."""
    return rows.record_of(job_of(row), row[17:21], row[21:33], now)
