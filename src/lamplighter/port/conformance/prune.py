"""Prune: retention by age and by count, never of anything young or alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    died,
    finished,
    key,
    logged,
    new_job,
    record,
    recording,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import RETENTION_FLOOR_MS, Pruned, Retention, SubmitAnswer

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}
HOUR_MS = 3_600_000
NOTHING_KEPT = Retention(finished_ms=0, finished_count=0, dead_ms=0, key_ms=0)


async def test_finished_jobs_go_by_age(engine: Engine, clock: VirtualClock) -> None:
    old = await finished(engine)
    clock.advance(ms=HOUR_MS)
    new = await finished(engine)
    clock.advance(ms=HOUR_MS)

    pruned = await engine.jobs.prune(Retention(finished_ms=HOUR_MS + HOUR_MS // 2), 100)

    assert (pruned.jobs, pruned.more) == (1, False)
    assert await engine.inspector.job(old.job.id) is None
    assert (await record(engine, new.job.id)).state is JobState.SUCCEEDED


async def test_cancelled_jobs_go_by_age_too(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job())
    await engine.jobs.cancel([job_id], **BY)
    clock.advance(ms=2 * HOUR_MS)

    assert (await engine.jobs.prune(Retention(finished_ms=HOUR_MS), 100)).jobs == 1
    assert await engine.inspector.job(job_id) is None


async def test_age_counts_from_the_end_not_from_the_submission(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(ms=5 * HOUR_MS)
    await settle_one(engine, completed(taken))
    clock.advance(ms=HOUR_MS // 2)

    assert (await engine.jobs.prune(Retention(finished_ms=HOUR_MS), 100)).jobs == 0


async def test_finished_jobs_go_by_count_oldest_first(engine: Engine, clock: VirtualClock) -> None:
    ids: list[str] = []
    for _ in range(5):
        ids.append((await finished(engine)).job.id)
        clock.advance(seconds=1)
    clock.advance(ms=HOUR_MS)

    pruned = await engine.jobs.prune(Retention(finished_count=2), 100)

    assert pruned.jobs == 3
    left = [job_id for job_id in ids if await engine.inspector.job(job_id)]
    assert left == ids[3:]


async def test_dead_jobs_go_by_their_own_age(engine: Engine, clock: VirtualClock) -> None:
    ended, dead = await finished(engine), await died(engine)
    clock.advance(ms=2 * HOUR_MS)

    await engine.jobs.prune(Retention(finished_ms=HOUR_MS, finished_count=0), 100)
    assert await engine.inspector.job(ended.job.id) is None
    assert (await record(engine, dead.job.id)).state is JobState.DEAD

    await engine.jobs.prune(Retention(dead_ms=HOUR_MS), 100)
    assert await engine.inspector.job(dead.job.id) is None
    assert await engine.inspector.attempts(dead.job.id) == []


async def test_logs_go_with_their_jobs(engine: Engine, clock: VirtualClock) -> None:
    old, kept = await running(engine), await running(engine)
    await engine.jobs.record([recording(old, "a", "b"), recording(kept, "c")])
    await settle_one(engine, completed(old))
    clock.advance(ms=2 * HOUR_MS)
    await settle_one(engine, completed(kept))

    pruned = await engine.jobs.prune(Retention(finished_ms=HOUR_MS), 100)

    assert pruned.jobs == 1
    assert await engine.inspector.logs(old.job.id) == []
    assert await logged(engine, kept.job.id) == ["c"]


async def test_every_job_goes_however_long_the_logs_are(
    engine: Engine, clock: VirtualClock
) -> None:
    ids: list[str] = []
    for _ in range(3):
        taken = await running(engine)
        await engine.jobs.record([recording(taken, *("x" for _ in range(700)))])
        await settle_one(engine, completed(taken))
        ids.append(taken.job.id)
    clock.advance(ms=2 * HOUR_MS)
    removed = 0
    while True:
        pruned = await engine.jobs.prune(NOTHING_KEPT, 100)
        removed += pruned.jobs
        if not pruned.more:
            break

    assert removed == 3
    assert [one for one in ids if await engine.inspector.logs(one)] == []


async def test_nothing_younger_than_a_quarter_of_an_hour_is_pruned(
    engine: Engine, clock: VirtualClock
) -> None:
    ended, dead = await finished(engine), await died(engine)
    clock.advance(ms=RETENTION_FLOOR_MS - 1)

    assert (await engine.jobs.prune(NOTHING_KEPT, 100)).jobs == 0
    assert (await record(engine, ended.job.id)).state is JobState.SUCCEEDED

    clock.advance(ms=2)

    assert (await engine.jobs.prune(NOTHING_KEPT, 100)).jobs == 2
    assert await engine.inspector.job(dead.job.id) is None


async def test_a_job_that_is_not_terminal_is_never_pruned(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    ids = await submit(engine, new_job(), new_job(held=True), new_job(delay_ms=1))
    clock.advance(seconds=400 * 86_400)

    assert (await engine.jobs.prune(NOTHING_KEPT, 100)).jobs == 0
    assert (await record(engine, taken.job.id)).state is JobState.RUNNING
    assert {(await record(engine, one)).state for one in ids} == {JobState.WAITING}


async def test_a_replayed_job_is_not_pruned_for_its_old_end(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await finished(engine)
    clock.advance(ms=2 * HOUR_MS)
    await engine.jobs.replay([taken.job.id], **BY)

    assert (await engine.jobs.prune(NOTHING_KEPT, 100)).jobs == 0
    assert len(await claim(engine)) == 1


async def test_one_prune_removes_at_most_its_limit_and_says_if_there_is_more(
    engine: Engine, clock: VirtualClock
) -> None:
    for _ in range(5):
        await finished(engine)
    clock.advance(ms=2 * HOUR_MS)
    kept = Retention(finished_ms=HOUR_MS)

    first, second, third = [await engine.jobs.prune(kept, 2) for _ in range(3)]

    assert (first.jobs, second.jobs, third.jobs) == (2, 2, 1)
    assert (first.more, second.more, third.more) == (True, True, False)


async def test_pruning_an_empty_store_removes_nothing(engine: Engine) -> None:
    assert await engine.jobs.prune(NOTHING_KEPT, 100) == Pruned()


async def test_a_key_goes_after_its_own_age_once_its_job_is_gone(
    engine: Engine, clock: VirtualClock
) -> None:
    await finished(engine, new_job(key=key()))
    clock.advance(ms=2 * HOUR_MS)
    await engine.jobs.prune(Retention(finished_ms=HOUR_MS, key_ms=3 * HOUR_MS), 100)
    assert await _answer(engine) is SubmitAnswer.GONE

    clock.advance(ms=2 * HOUR_MS)
    pruned = await engine.jobs.prune(Retention(key_ms=3 * HOUR_MS), 100)

    assert pruned.keys == 1
    assert await _answer(engine) is SubmitAnswer.CREATED


@pytest.mark.parametrize("state", [JobState.WAITING, JobState.SUCCEEDED])
async def test_a_key_stays_as_long_as_its_job(
    engine: Engine, clock: VirtualClock, state: JobState
) -> None:
    job = new_job(key=key())
    if state is JobState.SUCCEEDED:
        await finished(engine, job)
    else:
        await submit(engine, job)
    clock.advance(ms=5 * HOUR_MS)

    pruned = await engine.jobs.prune(Retention(key_ms=HOUR_MS), 100)

    assert (pruned.jobs, pruned.keys) == (0, 0)
    assert await _answer(engine) is SubmitAnswer.ALREADY


async def _answer(engine: Engine) -> SubmitAnswer:
    (answer,) = await engine.jobs.submit([new_job(key=key())])
    return answer.answer
