"""Rows to values and back. Text columns that hold JSON are read and written only here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.model.job import (
    NO_EXTRAS,
    Attempt,
    Claim,
    Delivery,
    Fence,
    Job,
    JobRecord,
    JobState,
    status_of,
)
from lamplighter.port import texts

if TYPE_CHECKING:
    from lamplighter.engines.sqlite.catalog import Lane
    from lamplighter.engines.sqlite.transaction import Row

_AT_MOST_ONCE = Delivery.AT_MOST_ONCE.value


def mark_to_text(by: str, reason: str, now: int) -> str:
    """Write who did something, why and when."""
    return json.dumps({"by": texts.clean(by), "reason": texts.clean(reason), "at": now})


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
        extras=NO_EXTRAS if row[7] is None else texts.extras_of(row[7]),
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
    hold, cancel = texts.mark_of(row[21]), texts.mark_of(row[22])
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
        error=texts.error_of(row[29]),
        progress=texts.progress_of(row[30]),
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
        error=texts.error_of(row[8]),
        nonce=row[9],
    )
