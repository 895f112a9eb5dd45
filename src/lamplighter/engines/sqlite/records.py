"""Rows to values and back. Text columns that hold JSON are read and written only here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lamplighter.model.job import (
    NO_EXTRAS,
    Claim,
    Delivery,
    Fence,
    Job,
    JobRecord,
)
from lamplighter.port import rows, texts
from lamplighter.port.schedules import RunKind, RunRecord, RunState

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


def held_claim(row: Row, lane: Lane, *, started: int = 0) -> Claim:
    """Build a Claim from a row of a job that is running, and the lease whose start was marked."""
    return Claim(
        job=claimed_job(row, lane),
        fence=Fence(row[15], row[16]),
        worker=row[17],
        handout=row[18],
        started=row[15] == started,
    )


def record_of(row: Row, lane: Lane, now: int) -> JobRecord:
    """Build the full record from the columns of `inspect.sql`."""
    return rows.record_of(claimed_job(row, lane), row[15:19], row[20:32], now)


def run_of(row: Row, schedule: str) -> RunRecord:
    """Build a run from the columns of `inspect_schedules.sql`."""
    return RunRecord(
        schedule=schedule,
        due_ms=row[0],
        kind=RunKind(row[1]),
        state=RunState(row[2]),
        at_ms=row[3],
        job_id=row[4],
        reason=row[5],
        first_ms=row[6],
        count=row[7],
        finished_at_ms=row[8],
        started_at_ms=row[9],
    )
