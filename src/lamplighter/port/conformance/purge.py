"""Purge: an operator removes terminal jobs, whatever their age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.job import JobState
from lamplighter.model.journal import Journal, Progress
from lamplighter.port.conformance.builders import (
    answers,
    completed,
    died,
    finished,
    key,
    logged,
    new_id,
    new_job,
    record,
    recording,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import ChangeAnswer, Changed, Recording, SubmitAnswer, Submitted

if TYPE_CHECKING:
    from lamplighter.port.store import Engine

DONE, CONFLICT, UNKNOWN = ChangeAnswer.DONE, ChangeAnswer.CONFLICT, ChangeAnswer.UNKNOWN
BY = {"by": "alice", "reason": "it holds private data"}


async def test_a_purged_job_is_gone_with_its_history(engine: Engine) -> None:
    taken = await died(engine)
    assert await engine.inspector.attempts(taken.job.id)

    answer = await engine.jobs.purge([taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, DONE, None)]
    assert await engine.inspector.job(taken.job.id) is None
    assert await engine.inspector.attempts(taken.job.id) == []


async def test_a_purged_job_is_gone_with_its_logs_and_no_other(engine: Engine) -> None:
    taken, other = await running(engine), await running(engine)
    await engine.jobs.record([recording(taken, "private"), recording(other, "kept")])
    said = Recording(taken.job.id, taken.fence, Journal(progress=Progress(done=1)))
    await engine.jobs.record([said])
    await settle_one(engine, completed(taken))

    await engine.jobs.purge([taken.job.id], **BY)

    assert await engine.inspector.logs(taken.job.id) == []
    assert await logged(engine, other.job.id) == ["kept"]
    again = await running(engine, new_job(id=taken.job.id))
    assert await engine.inspector.logs(taken.job.id) == []
    found = await record(engine, taken.job.id)
    assert (found.progress, found.lease) == (None, taken.fence.lease)
    assert again.job.id == taken.job.id


async def test_a_job_named_twice_is_purged_once(engine: Engine) -> None:
    taken = await finished(engine)

    answer = await engine.jobs.purge([taken.job.id, taken.job.id], **BY)

    assert answer == [Changed(taken.job.id, DONE, None), Changed(taken.job.id, UNKNOWN, None)]


async def test_purge_of_a_job_that_is_not_terminal_is_a_conflict(engine: Engine) -> None:
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await engine.jobs.purge([taken.job.id, waiting], **BY)

    assert answer == [
        Changed(taken.job.id, CONFLICT, JobState.RUNNING),
        Changed(waiting, CONFLICT, JobState.WAITING),
    ]
    assert (await record(engine, waiting)).state is JobState.WAITING


async def test_purge_answers_for_each_job_in_order(engine: Engine) -> None:
    ended = await finished(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await engine.jobs.purge([new_id(), waiting, ended.job.id], **BY)

    assert answers(answer) == [UNKNOWN, CONFLICT, DONE]


async def test_purging_twice_is_purging_once(engine: Engine) -> None:
    taken = await finished(engine)
    await engine.jobs.purge([taken.job.id], **BY)

    assert answers(await engine.jobs.purge([taken.job.id], **BY)) == [UNKNOWN]


async def test_the_key_of_a_purged_job_answers_gone(engine: Engine) -> None:
    first = new_job(key=key())
    await finished(engine, first)
    await engine.jobs.purge([first.id], **BY)

    again = await engine.jobs.submit([new_job(key=key())])

    assert again == [Submitted(first.id, SubmitAnswer.GONE)]


# ── erase ────────────────────────────────────────────────────────────────────────────────────


async def test_an_erased_job_is_gone_with_its_key_and_the_key_is_free(engine: Engine) -> None:
    first, other = new_job(key=key()), new_job(key=key("other"))
    taken = await running(engine, first)
    await submit(engine, other)
    await engine.jobs.record([recording(taken, "private")])
    await settle_one(engine, completed(taken, b'"private"'))

    assert await engine.jobs.erase([first.id], **BY) == [Changed(first.id, DONE, None)]

    assert await engine.inspector.job(first.id) is None
    assert await engine.inspector.attempts(first.id) == []
    assert await engine.inspector.logs(first.id) == []
    again = new_job(key=key(body="another"))
    assert await engine.jobs.submit([again]) == [Submitted(again.id, SubmitAnswer.CREATED)]
    known = await engine.jobs.submit([new_job(key=key("other"))])
    assert known == [Submitted(other.id, SubmitAnswer.ALREADY)]


async def test_keys_of_jobs_that_were_made_at_the_same_time_stay(engine: Engine) -> None:
    keyed = [new_job(key=key(f"key {n}")) for n in range(5)]
    await submit(engine, *keyed)
    await engine.jobs.cancel([job.id for job in keyed], **BY)

    erased = await engine.jobs.erase([keyed[1].id, keyed[3].id], **BY)

    assert answers(erased) == [DONE, DONE]
    again = await engine.jobs.submit([new_job(key=key(f"key {n}")) for n in range(5)])
    said = [one.answer for one in again]
    created, already = SubmitAnswer.CREATED, SubmitAnswer.ALREADY
    assert said == [already, created, already, created, already]


async def test_erase_answers_for_each_job_as_purge_does(engine: Engine) -> None:
    ended = await finished(engine)
    buried = await died(engine)
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())

    named = [new_id(), waiting, taken.job.id, ended.job.id, buried.job.id, ended.job.id]
    said = await engine.jobs.erase(named, **BY)

    assert answers(said) == [UNKNOWN, CONFLICT, CONFLICT, DONE, DONE, UNKNOWN]
    assert (await record(engine, waiting)).state is JobState.WAITING
    assert (await record(engine, taken.job.id)).state is JobState.RUNNING
    assert answers(await engine.jobs.erase([ended.job.id], **BY)) == [UNKNOWN]
