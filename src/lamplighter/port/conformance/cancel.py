"""Cancel: before it runs at once, while it runs by request, afterwards not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import JobState, Mark, Status
from lamplighter.port.conformance.builders import (
    answers,
    claim,
    completed,
    died,
    finished,
    new_id,
    new_job,
    record,
    released,
    request,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import ChangeAnswer, Changed

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, REQUESTED, ALREADY = ChangeAnswer.DONE, ChangeAnswer.REQUESTED, ChangeAnswer.ALREADY
CONFLICT, UNKNOWN = ChangeAnswer.CONFLICT, ChangeAnswer.UNKNOWN
BY = {"by": "alice", "reason": "not needed"}


@pytest.mark.parametrize("how", ["due", "later", "held", "retrying"])
async def test_a_waiting_job_is_cancelled_and_never_runs(
    engine: Engine, clock: VirtualClock, how: str
) -> None:
    job = new_job(delay_ms=5_000 if how == "later" else 0, held=how == "held")
    if how == "retrying":
        await settle_one(engine, released(await running(engine, job)))
    else:
        await submit(engine, job)

    answer = await engine.jobs.cancel([job.id], **BY)

    assert answer == [Changed(job.id, DONE, JobState.CANCELLED)]
    found = await record(engine, job.id)
    assert (found.state, found.finished_at_ms) == (JobState.CANCELLED, clock.now_ms())
    clock.advance(seconds=3_600)
    await engine.jobs.unhold([job.id], **BY)
    again = await engine.jobs.claim(request(limit=10))
    assert (again.claims, again.poll_after_ms) == ([], None)


async def test_a_cancelled_job_says_who_did_it_and_why(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job())

    await engine.jobs.cancel([job_id], **BY)

    found = await record(engine, job_id)
    assert found.cancel == Mark(by="alice", reason="not needed", at_ms=clock.now_ms())


async def test_cancel_of_a_running_job_is_a_request(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)

    answer = await engine.jobs.cancel([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, REQUESTED, JobState.RUNNING)]
    found = await record(engine, taken.job.id)
    assert (found.state, found.status) == (JobState.RUNNING, Status.CANCELLING)
    assert found.cancel == Mark(by="alice", reason="not needed", at_ms=clock.now_ms())


async def test_cancel_asked_again_is_already(engine: Engine) -> None:
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())
    await engine.jobs.cancel([taken.job.id, waiting], **BY)
    before = await record(engine, taken.job.id)

    again = await engine.jobs.cancel([taken.job.id, waiting], by="bob", reason="me too")

    assert again == [
        Changed(taken.job.id, ALREADY, JobState.RUNNING),
        Changed(waiting, ALREADY, JobState.CANCELLED),
    ]
    assert await record(engine, taken.job.id) == before


async def test_a_job_named_twice_is_cancelled_once(engine: Engine) -> None:
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await engine.jobs.cancel([waiting, taken.job.id, waiting, taken.job.id], **BY)

    assert answer == [
        Changed(waiting, DONE, JobState.CANCELLED),
        Changed(taken.job.id, REQUESTED, JobState.RUNNING),
        Changed(waiting, ALREADY, JobState.CANCELLED),
        Changed(taken.job.id, ALREADY, JobState.RUNNING),
    ]
    assert await claim(engine, 10) == []


async def test_cancel_of_a_job_that_ended_otherwise_is_a_conflict(engine: Engine) -> None:
    succeeded, dead = await finished(engine), await died(engine)

    answer = await engine.jobs.cancel([succeeded.job.id, dead.job.id], **BY)

    assert answer == [
        Changed(succeeded.job.id, CONFLICT, JobState.SUCCEEDED),
        Changed(dead.job.id, CONFLICT, JobState.DEAD),
    ]


async def test_cancel_of_an_unknown_job_says_so(engine: Engine) -> None:
    job_id = new_id()

    assert await engine.jobs.cancel([job_id], **BY) == [Changed(job_id, UNKNOWN, None)]


async def test_cancel_answers_for_each_job_in_order(engine: Engine) -> None:
    taken, ended = await running(engine), await finished(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await engine.jobs.cancel([new_id(), waiting, ended.job.id, taken.job.id], **BY)

    assert answers(answer) == [UNKNOWN, DONE, CONFLICT, REQUESTED]


async def test_a_cancelled_head_does_not_hide_those_behind_it(engine: Engine) -> None:
    ids = await submit(engine, *(new_job() for _ in range(4)))

    await engine.jobs.cancel(ids[:2], **BY)

    assert [one.job.id for one in await claim(engine, 10)] == ids[2:]


async def test_after_a_request_a_success_is_final(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], **BY)
    await settle_one(engine, completed(taken))

    assert answers(await engine.jobs.cancel([taken.job.id], **BY)) == [CONFLICT]
    assert (await record(engine, taken.job.id)).state is JobState.SUCCEEDED


async def test_more_cancels_than_a_batch_are_refused(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job())
    ids = [job_id] + [new_id() for _ in range(engine.capabilities.max_batch)]

    with pytest.raises(InvalidInput):
        await engine.jobs.cancel(ids, **BY)

    assert (await record(engine, job_id)).state is JobState.WAITING
