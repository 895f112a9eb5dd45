"""Replay: a terminal job again, as a new life under the same id."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lamplighter.model.job import JobState, Status
from lamplighter.model.journal import Journal, Progress
from lamplighter.port.conformance.builders import (
    abandoned,
    answers,
    claim,
    claim_one,
    completed,
    died,
    failed,
    finished,
    handed_out,
    key,
    logged,
    new_id,
    new_job,
    pieces,
    record,
    recording,
    released,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import ChangeAnswer, Changed, SubmitAnswer, Submitted

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, CONFLICT, UNKNOWN = ChangeAnswer.DONE, ChangeAnswer.CONFLICT, ChangeAnswer.UNKNOWN
BY = {"by": "alice", "reason": "the cause is repaired"}


async def test_a_replayed_job_runs_again_as_a_new_generation(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await died(engine)
    clock.advance(seconds=5)

    answer = await engine.jobs.replay([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, DONE, JobState.WAITING)]
    found = await record(engine, taken.job.id)
    assert (found.status, found.job.due_at_ms) == (Status.READY, clock.now_ms())
    again = await claim_one(engine)
    assert (again.job.id, again.job.generation) == (taken.job.id, 1)


async def test_the_counters_of_a_replayed_job_are_at_zero(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    for _ in range(10):
        clock.advance(seconds=31)
        (expired,) = await engine.jobs.rescue(1)
        await settle_one(engine, abandoned(expired.claim))
        if (await record(engine, taken.job.id)).state is JobState.DEAD:
            break
        await engine.jobs.retry([taken.job.id], **BY)
        await claim_one(engine)
    assert (await record(engine, taken.job.id)).job.losses == 10

    await engine.jobs.replay([taken.job.id], **BY)

    job = (await record(engine, taken.job.id)).job
    assert (job.attempt, job.crashes, job.losses, job.suspect) == (0, 0, 0, False)


async def test_nothing_of_the_old_life_is_left_on_a_replayed_job(engine: Engine) -> None:
    ended, dead = await running(engine), await died(engine)
    await engine.jobs.hold([ended.job.id], **BY)
    await engine.jobs.cancel([ended.job.id], **BY)
    await settle_one(engine, completed(ended, b"1"))
    ids = [ended.job.id, dead.job.id]

    await engine.jobs.replay(ids, **BY)

    for job_id in ids:
        found = await record(engine, job_id)
        assert (found.result, found.result_note, found.error, found.reason) == (None,) * 4
        assert (found.cancel, found.hold, found.finished_at_ms) == (None, None, None)
        assert (found.worker, found.expires_at_ms) == (None, None)
    assert len(await claim(engine, 10)) == 2


async def test_the_history_of_the_old_life_stays(engine: Engine) -> None:
    taken = await died(engine)
    await engine.jobs.replay([taken.job.id], **BY)
    await settle_one(engine, failed(await claim_one(engine)))

    history = await engine.inspector.attempts(taken.job.id)

    assert [(row.generation, row.outcome) for row in history] == [(0, "failed"), (1, "failed")]


async def test_the_attempts_that_ended_earlier_lives_stay(
    engine: Engine, clock: VirtualClock
) -> None:
    first = await finished(engine)
    (before,) = await engine.inspector.attempts(first.job.id)
    clock.advance(seconds=5)
    await engine.jobs.replay([first.job.id], **BY)
    assert await engine.inspector.attempts(first.job.id) == [before]
    stopped = await claim_one(engine)
    await engine.jobs.cancel([first.job.id], **BY)
    await settle_one(engine, released(stopped))
    await engine.jobs.replay([first.job.id], **BY)
    await claim_one(engine)

    kept, *others = await engine.inspector.attempts(first.job.id)

    assert kept == before
    assert [(one.generation, one.outcome) for one in others] == [(1, "cancelled"), (2, "running")]


async def test_the_log_of_the_old_life_stays_and_its_progress_does_not(engine: Engine) -> None:
    taken = await running(engine)
    said = replace(
        recording(taken, "old"), journal=Journal(progress=Progress(done=1), pieces=pieces("old"))
    )
    await engine.jobs.record([said])
    await settle_one(engine, completed(taken))

    await engine.jobs.replay([taken.job.id], **BY)

    assert (await record(engine, taken.job.id)).progress is None
    await engine.jobs.record([recording(await claim_one(engine), "new")])
    assert await logged(engine, taken.job.id) == ["old", "new"]


async def test_a_job_named_twice_is_replayed_once(engine: Engine) -> None:
    taken = await died(engine)

    answer = await engine.jobs.replay([taken.job.id, taken.job.id], **BY)

    assert answers(answer) == [DONE, CONFLICT]
    assert (await record(engine, taken.job.id)).job.generation == 1
    assert await handed_out(engine, 10) == [taken.job.id]


async def test_a_fence_of_the_old_life_cannot_touch_the_new_one(engine: Engine) -> None:
    old = await died(engine)
    await engine.jobs.replay([old.job.id], **BY)
    new = await claim_one(engine)

    assert new.fence.lease > old.fence.lease
    assert (await settle_one(engine, completed(old))).answer == "lost"
    assert (await record(engine, old.job.id)).state is JobState.RUNNING


async def test_replay_of_a_job_that_is_not_terminal_is_a_conflict(engine: Engine) -> None:
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await engine.jobs.replay([taken.job.id, waiting], **BY)

    assert answer == [
        Changed(taken.job.id, CONFLICT, JobState.RUNNING),
        Changed(waiting, CONFLICT, JobState.WAITING),
    ]


async def test_every_terminal_state_can_be_replayed(engine: Engine) -> None:
    ended, dead = await finished(engine), await died(engine)
    (stopped,) = await submit(engine, new_job())
    await engine.jobs.cancel([stopped], **BY)
    ids = [ended.job.id, dead.job.id, stopped]

    answer = await engine.jobs.replay([*ids, new_id()], **BY)

    assert answers(answer) == [DONE, DONE, DONE, UNKNOWN]
    assert sorted(await handed_out(engine, 10)) == sorted(ids)


async def test_replay_asked_twice_makes_one_new_life(engine: Engine) -> None:
    taken = await died(engine)
    await engine.jobs.replay([taken.job.id], **BY)

    again = await engine.jobs.replay([taken.job.id], **BY)

    assert answers(again) == [CONFLICT]
    assert (await record(engine, taken.job.id)).job.generation == 1


async def test_the_idempotency_key_still_belongs_to_the_replayed_job(engine: Engine) -> None:
    first = new_job(key=key())
    await finished(engine, first)
    await engine.jobs.replay([first.id], **BY)

    again = await engine.jobs.submit([new_job(key=key())])

    assert again == [Submitted(first.id, SubmitAnswer.ALREADY)]


async def test_a_replayed_job_can_be_given_back_and_claimed_again(engine: Engine) -> None:
    taken = await finished(engine)
    await engine.jobs.replay([taken.job.id], **BY)
    await settle_one(engine, released(await claim_one(engine)))

    assert (await claim_one(engine)).job.generation == 1
