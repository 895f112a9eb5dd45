"""Retry: run a waiting job now; a dead one goes on in the same life."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter.model.job import JobState, Status
from lamplighter.model.journal import Journal, Progress
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import AbandonCause, Abandoned
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    answers,
    claim,
    claim_one,
    completed,
    died,
    failed,
    finished,
    handed_out,
    logged,
    new_id,
    new_job,
    pieces,
    record,
    recording,
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
    assert (await record(engine, dead.job.id)).job.generation == 0
    assert sorted(await handed_out(engine, 10)) == sorted([later, dead.job.id])


async def test_retry_of_a_running_job_is_a_conflict(engine: Engine) -> None:
    taken = await running(engine)

    answer = await engine.jobs.retry([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, CONFLICT, JobState.RUNNING)]


async def test_a_retried_dead_job_goes_on_in_the_same_life(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await died(engine)
    clock.advance(seconds=5)

    answer = await engine.jobs.retry([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, DONE, JobState.WAITING)]
    found = await record(engine, taken.job.id)
    assert (found.status, found.job.due_at_ms) == (Status.READY, clock.now_ms())
    again = await claim_one(engine)
    assert (again.job.id, again.job.generation, again.job.attempt) == (taken.job.id, 0, 0)
    assert again.fence.lease > taken.fence.lease


async def test_what_made_a_job_dead_is_gone_when_it_is_retried(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.hold([taken.job.id], **BY)
    await settle_one(engine, failed(taken, retry=Retry(max_attempts=1)))

    await engine.jobs.retry([taken.job.id], **BY)

    found = await record(engine, taken.job.id)
    assert (found.error, found.reason, found.result) == (None, None, None)
    assert (found.cancel, found.hold, found.finished_at_ms) == (None, None, None)
    assert (found.worker, found.expires_at_ms) == (None, None)
    assert await handed_out(engine, 1) == [taken.job.id]


async def test_the_counters_of_a_retried_dead_job_are_at_zero(engine: Engine) -> None:
    taken = await running(engine)
    for _ in range(2):
        await settle_one(engine, settle(taken, Abandoned(AbandonCause.CRASHED_ALONE)))
        await engine.jobs.retry([taken.job.id], **BY)
        taken = await claim_one(engine)
    await settle_one(engine, settle(taken, Abandoned(AbandonCause.CRASHED_ALONE)))
    found = await record(engine, taken.job.id)
    assert found.state is JobState.DEAD
    assert (found.job.crashes, found.job.suspect) == (3, True)

    await engine.jobs.retry([taken.job.id], **BY)

    job = (await record(engine, taken.job.id)).job
    assert (job.attempt, job.crashes, job.losses, job.suspect) == (0, 0, 0, False)
    (again,) = await claim(engine, requirements=("",))
    assert again.job.id == taken.job.id


async def test_a_retried_dead_job_keeps_its_attempts_logs_and_progress(engine: Engine) -> None:
    taken = await running(engine)
    said = replace(
        recording(taken, "old"), journal=Journal(progress=Progress(done=1), pieces=pieces("old"))
    )
    await engine.jobs.record([said])
    await settle_one(engine, failed(taken, retry=Retry(max_attempts=1)))
    before = await engine.inspector.attempts(taken.job.id)

    await engine.jobs.retry([taken.job.id], **BY)

    assert await engine.inspector.attempts(taken.job.id) == before
    assert (await record(engine, taken.job.id)).progress == Progress(done=1)
    again = await claim_one(engine)
    await engine.jobs.record([recording(again, "new")])
    assert await logged(engine, taken.job.id) == ["old", "new"]
    await settle_one(engine, completed(again))
    rows = await engine.inspector.attempts(taken.job.id)
    assert [(row.generation, row.number, row.outcome) for row in rows] == [
        (0, 1, "failed"),
        (0, 1, "succeeded"),
    ]


async def test_a_fence_from_before_a_retry_cannot_touch_the_job(engine: Engine) -> None:
    old = await died(engine)
    await engine.jobs.retry([old.job.id], **BY)
    await claim_one(engine)

    assert (await settle_one(engine, completed(old))).answer == "lost"
    assert (await record(engine, old.job.id)).state is JobState.RUNNING


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
