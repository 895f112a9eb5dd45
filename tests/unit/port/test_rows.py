"""Rows are read and written in the order in which `model/fields.py` declares their columns."""

from __future__ import annotations

from typing import Any

from lamplighter.model import fields
from lamplighter.model.job import Delivery, Fence, JobState, Level, NewJob
from lamplighter.port import rows

NOW = 1_000


class Mail:
    queue, level, type = "slow", Level.HIGH, "mail"


STORED: dict[str, Any] = {
    "id": "j1",
    "tenant": "acme",
    "due": 10,
    "created": 20,
    "args": b"{}",
    "extras": '{"tags": ["a"]}',
    "delivery": "at_most_once",
    "cost": 3,
    "schedule": "nightly",
    "attempt": 4,
    "crashes": 5,
    "losses": 6,
    "suspect": 1,
    "generation": 7,
    "lease": 8,
    "nonce": "n",
    "worker": "w",
    "handout": 9,
    "state": "cancelled",
    "hold": None,
    "cancel": '{"by": "ada", "reason": "why", "at": 11}',
    "claimed": 12,
    "expires": 13,
    "finished": 14,
    "reason": "r",
    "result": b"1",
    "result_note": "rn",
    "error": '{"type": "E", "message": "m"}',
}
JOB = tuple(STORED[name] for name in fields.JOB)
CLAIM = tuple(STORED[name] for name in fields.CLAIM)
RECORD = tuple(STORED[name] for name in fields.RECORD)


def test_a_job_is_read_column_by_column() -> None:
    job = rows.job_of((*JOB, "what follows"), Mail())

    assert (job.queue, job.level, job.type) == ("slow", Level.HIGH, "mail")
    assert (job.id, job.tenant, job.due_at_ms, job.created_at_ms) == ("j1", "acme", 10, 20)
    assert (job.args, job.extras.tags, job.delivery) == (b"{}", ("a",), Delivery.AT_MOST_ONCE)
    assert (job.cost, job.schedule, job.generation) == (3, "nightly", 7)
    assert (job.attempt, job.crashes, job.losses, job.suspect) == (4, 5, 6, True)


def test_a_claim_is_a_job_its_fence_and_whether_it_has_started() -> None:
    claim = rows.claim_of((*JOB, *CLAIM, 1, "what follows"), Mail())

    assert claim.job == rows.job_of(JOB, Mail())
    assert (claim.fence, claim.worker, claim.handout) == (Fence(8, "n"), "w", 9)
    assert claim.started is True


def test_a_record_is_all_of_it() -> None:
    row = (*JOB, *CLAIM, *RECORD, "[1, 2, null]", 1, "what follows")

    record = rows.stored_record_of(row, Mail(), NOW)

    assert record.job == rows.job_of(JOB, Mail())
    assert (record.lease, record.nonce, record.worker, record.handout) == (8, "n", "w", 9)
    assert (record.state, record.hold) == (JobState.CANCELLED, None)
    assert record.cancel is not None
    assert record.cancel.at_ms == 11
    assert (record.claimed_at_ms, record.expires_at_ms, record.finished_at_ms) == (12, 13, 14)
    assert (record.reason, record.result, record.result_note) == ("r", b"1", "rn")
    assert record.error is not None
    assert record.error.text == "E: m"
    assert record.progress is not None
    assert record.progress.done == 1


def test_what_is_submitted_comes_back() -> None:
    new = NewJob(
        id="j1", type="mail", args=b"{}", tenant="acme", queue="slow", level=Level.HIGH,
        delivery=Delivery.AT_MOST_ONCE, cost=3, schedule="nightly",
    )  # fmt: skip

    written = rows.row_of(new, created=20, due=10)

    assert len(written) == len(fields.SUBMITTED)
    job = rows.job_of((*written, *(0 for _ in fields.COUNTERS), 0), Mail())
    assert (job.id, job.tenant, job.args, job.cost) == (new.id, new.tenant, new.args, new.cost)
    assert (job.due_at_ms, job.created_at_ms, job.schedule) == (10, 20, "nightly")
    assert (job.delivery, job.extras) == (new.delivery, new.extras)


def test_no_field_is_in_two_groups_of_a_job() -> None:
    names = (*fields.JOB, *fields.CLAIM, *fields.RECORD)
    assert len(set(names)) == len(names)
