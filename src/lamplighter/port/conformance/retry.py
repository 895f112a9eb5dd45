"""Retry: run a waiting job now; a dead one again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.job import JobState, Status
from lamplighter.port.conformance.builders import (
    answers,
    claim,
    claim_one,
    died,
    failed,
    finished,
    handed_out,
    new_id,
    new_job,
    record,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, ALREADY = ChangeAnswer.DONE, ChangeAnswer.ALREADY
CONFLICT, UNKNOWN = ChangeAnswer.CONFLICT, ChangeAnswer.UNKNOWN
BY = {"by": "alice", "reason": "now please"}


async def test_retry_makes_a_waiting_job_due_now(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job(delay_ms=60_000))
    clock.advance(seconds=1)

    answer = await engine.jobs.retry([job_id], **BY)

    assert answer == [Changed(job_id, DONE, JobState.WAITING)]
    assert (await record(engine, job_id)).job.due_at_ms == clock.now_ms()
    assert await handed_out(engine, 1) == [job_id]


async def test_retry_of_a_failed_job_keeps_its_attempts(engine: Engine) -> None:
    taken = await running(engine)
    await settle_one(engine, failed(taken))

    await engine.jobs.retry([taken.job.id], **BY)

    assert (await claim_one(engine)).job.attempt == 1


async def test_retry_of_a_job_that_is_due_is_already(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job())
    due = clock.now_ms()
    clock.advance(seconds=5)

    assert answers(await engine.jobs.retry([job_id], **BY)) == [ALREADY]
    assert (await record(engine, job_id)).job.due_at_ms == due


async def test_a_job_named_twice_is_retried_once(engine: Engine) -> None:
    dead = await died(engine)
    (later,) = await submit(engine, new_job(delay_ms=60_000))

    answer = await engine.jobs.retry([later, dead.job.id, later, dead.job.id], **BY)

    assert answers(answer) == [DONE, DONE, ALREADY, ALREADY]
    assert (await record(engine, dead.job.id)).job.generation == 1
    assert sorted(await handed_out(engine, 10)) == sorted([later, dead.job.id])


async def test_retry_of_a_running_job_is_a_conflict(engine: Engine) -> None:
    taken = await running(engine)

    answer = await engine.jobs.retry([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, CONFLICT, JobState.RUNNING)]


async def test_retry_of_a_dead_job_is_replay(engine: Engine) -> None:
    taken = await died(engine)

    answer = await engine.jobs.retry([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, DONE, JobState.WAITING)]
    again = await claim_one(engine)
    assert (again.job.id, again.job.generation, again.job.attempt) == (taken.job.id, 1, 0)


async def test_retry_of_other_terminal_jobs_is_a_conflict(engine: Engine) -> None:
    ended = await finished(engine)
    (stopped,) = await submit(engine, new_job())
    await engine.jobs.cancel([stopped], **BY)

    answer = await engine.jobs.retry([ended.job.id, stopped], **BY)

    assert answer == [
        Changed(ended.job.id, CONFLICT, JobState.SUCCEEDED),
        Changed(stopped, CONFLICT, JobState.CANCELLED),
    ]


async def test_a_hold_stays_when_a_job_is_retried(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job(delay_ms=60_000, held=True))

    assert answers(await engine.jobs.retry([job_id], **BY)) == [DONE]

    found = await record(engine, job_id)
    assert (found.status, found.job.due_at_ms) == (Status.PAUSED, clock.now_ms())
    assert await claim(engine) == []


async def test_retry_answers_for_each_job_in_order(engine: Engine) -> None:
    taken = await running(engine)
    (later,) = await submit(engine, new_job(delay_ms=60_000))

    answer = await engine.jobs.retry([taken.job.id, new_id(), later], **BY)

    assert answers(answer) == [CONFLICT, UNKNOWN, DONE]
