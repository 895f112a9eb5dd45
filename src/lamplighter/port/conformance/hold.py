"""Hold and unhold: a job that is held is not handed out, whatever else happens to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import JobState, Mark, Status
from lamplighter.port.conformance.builders import (
    answers,
    claim,
    claim_one,
    completed,
    died,
    failed,
    finished,
    handed_out,
    new_id,
    new_job,
    record,
    released,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import ChangeAnswer, Changed, QueueSettings

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, ALREADY = ChangeAnswer.DONE, ChangeAnswer.ALREADY
CONFLICT, UNKNOWN = ChangeAnswer.CONFLICT, ChangeAnswer.UNKNOWN
BY = {"by": "alice", "reason": "looking into it"}


async def test_a_held_job_is_not_handed_out(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job())

    answer = await engine.jobs.hold([job_id], **BY)

    assert answer == [Changed(job_id, DONE, JobState.WAITING)]
    found = await record(engine, job_id)
    assert found.status is Status.PAUSED
    assert found.hold == Mark(by="alice", reason="looking into it", at_ms=clock.now_ms())
    clock.advance(seconds=3_600)
    assert await claim(engine, 10) == []


async def test_holding_again_is_already_and_the_first_mark_stays(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job())
    await engine.jobs.hold([job_id], **BY)
    before = await record(engine, job_id)
    clock.advance(seconds=1)

    again = await engine.jobs.hold([job_id], by="bob", reason="me too")

    assert again == [Changed(job_id, ALREADY, JobState.WAITING)]
    assert (await record(engine, job_id)).hold == before.hold


async def test_a_hold_on_a_running_job_is_kept_when_it_comes_back(engine: Engine) -> None:
    taken = await running(engine)

    answer = await engine.jobs.hold([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, DONE, JobState.RUNNING)]
    await settle_one(engine, released(taken))
    assert (await record(engine, taken.job.id)).status is Status.PAUSED
    assert await claim(engine, 10) == []


async def test_a_hold_does_not_keep_a_running_job_from_ending(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.hold([taken.job.id], **BY)

    await settle_one(engine, completed(taken))

    assert (await record(engine, taken.job.id)).state is JobState.SUCCEEDED


async def test_hold_of_a_terminal_job_is_a_conflict(engine: Engine) -> None:
    ended, dead = await finished(engine), await died(engine)
    ids = [ended.job.id, dead.job.id]

    assert answers(await engine.jobs.hold(ids, **BY)) == [CONFLICT, CONFLICT]
    assert answers(await engine.jobs.unhold(ids, **BY)) == [CONFLICT, CONFLICT]


async def test_hold_and_unhold_answer_for_each_job_in_order(engine: Engine) -> None:
    ended = await finished(engine)
    held, free = await submit(engine, new_job(held=True), new_job())
    ids = [free, new_id(), ended.job.id, held]

    assert answers(await engine.jobs.hold(ids, **BY)) == [DONE, UNKNOWN, CONFLICT, ALREADY]
    assert answers(await engine.jobs.unhold(ids, **BY)) == [DONE, UNKNOWN, CONFLICT, DONE]


async def test_a_job_named_twice_is_held_and_unheld_once(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job())

    held = await engine.jobs.hold([job_id, job_id], **BY)
    unheld = await engine.jobs.unhold([job_id, job_id], **BY)

    assert answers(held) == answers(unheld) == [DONE, ALREADY]
    assert await handed_out(engine, 10) == [job_id]


async def test_an_unheld_job_is_due_when_it_was_due(engine: Engine, clock: VirtualClock) -> None:
    first, second = await submit(engine, new_job(), new_job())
    (later,) = await submit(engine, new_job(delay_ms=60_000))
    due = clock.now_ms() + 60_000
    await engine.jobs.hold([first, later], **BY)
    clock.advance(seconds=5)

    answer = await engine.jobs.unhold([first, later], **BY)

    assert answer == [
        Changed(first, DONE, JobState.WAITING),
        Changed(later, DONE, JobState.WAITING),
    ]
    assert (await record(engine, later)).job.due_at_ms == due
    assert (await record(engine, first)).hold is None
    assert await handed_out(engine, 10) == [first, second]


async def test_unhold_of_a_job_that_is_not_held_is_already(engine: Engine) -> None:
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await engine.jobs.unhold([waiting, taken.job.id], **BY)

    assert answers(answer) == [ALREADY, ALREADY]


async def test_a_hold_on_a_running_job_can_be_taken_back(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.hold([taken.job.id], **BY)

    assert answers(await engine.jobs.unhold([taken.job.id], **BY)) == [DONE]

    await settle_one(engine, released(taken))
    assert (await claim_one(engine)).job.id == taken.job.id


async def test_a_held_job_that_failed_is_due_after_its_delay_once_unheld(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    await engine.jobs.hold([taken.job.id], **BY)
    await settle_one(engine, failed(taken))
    await engine.jobs.unhold([taken.job.id], **BY)

    assert await claim(engine) == []
    clock.advance(seconds=10)
    assert await handed_out(engine, 1) == [taken.job.id]


async def test_a_job_hold_and_a_queue_hold_do_not_open_each_other(engine: Engine) -> None:
    (job_id,) = await submit(engine, new_job())
    await engine.jobs.hold([job_id], **BY)
    await engine.settings.put_queue("default", QueueSettings(held=True), **BY)
    await engine.settings.put_queue("default", QueueSettings(held=False), **BY)
    assert await claim(engine) == []

    await engine.settings.put_queue("default", QueueSettings(held=True), **BY)
    await engine.jobs.unhold([job_id], **BY)
    assert await claim(engine) == []

    await engine.settings.put_queue("default", QueueSettings(held=False), **BY)
    assert await handed_out(engine, 1) == [job_id]


@pytest.mark.parametrize("note", ["r" * 1_001, "two\nlines", "a\x00b"])
async def test_a_note_that_cannot_be_shown_is_refused_and_changes_nothing(
    engine: Engine, note: str
) -> None:
    (job_id,) = await submit(engine, new_job())

    with pytest.raises(InvalidInput):
        await engine.jobs.hold([job_id], by="ann", reason=note)
    with pytest.raises(InvalidInput):
        await engine.jobs.cancel([job_id], by=note, reason="")

    found = await record(engine, job_id)
    assert (found.state, found.hold) == (JobState.WAITING, None)
