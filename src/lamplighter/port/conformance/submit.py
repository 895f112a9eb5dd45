"""Submit: every job stored once, all of a call or none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lamplighter import runtime
from lamplighter.model.errors import InvalidInput
from lamplighter.model.ids import RANDOM_BITS, compose
from lamplighter.model.job import Delivery, Extras, JobState, Level, NewJob, Status
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    claim,
    claim_one,
    finished,
    handed_out,
    key,
    new_id,
    new_job,
    record,
    submit,
)
from lamplighter.port.values import Retention, SubmitAnswer, Submitted

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

CREATED, ALREADY = SubmitAnswer.CREATED, SubmitAnswer.ALREADY
GONE, CONFLICT = SubmitAnswer.GONE, SubmitAnswer.CONFLICT


async def test_submit_answers_for_each_job_in_order(engine: Engine) -> None:
    jobs = [new_job() for _ in range(5)]

    assert await engine.jobs.submit(jobs) == [Submitted(job.id, CREATED) for job in jobs]


async def test_submit_of_nothing_answers_nothing(engine: Engine) -> None:
    assert await engine.jobs.submit([]) == []


async def test_a_submitted_job_is_stored_as_it_was_given(
    engine: Engine, clock: VirtualClock
) -> None:
    given = NewJob(
        id=new_id(),
        type="größer",
        args=b'{"n": 1}',
        queue="\N{SNOWMAN} queue",
        level=Level.HIGH,
        tenant="it's 100 % \N{BUG}",
        delivery=Delivery.AT_MOST_ONCE,
        extras=Extras(
            retry=Retry(delays=[1, 2], no_retry_on=["KeyError"]),
            timeout=12.5,
            tags=("red", "blau"),
            metadata={"deep": {"list": [1, None, "ß"]}},
        ),
        cost=3,
        schedule="nightly",
    )

    await submit(engine, given)

    found = await record(engine, given.id)
    assert found.state is JobState.WAITING
    assert found.job.created_at_ms == clock.now_ms()
    for name in ("id", "type", "args", "queue", "level", "tenant", "delivery", "extras"):
        assert getattr(found.job, name) == getattr(given, name), name
    assert (found.job.cost, found.job.schedule) == (3, "nightly")
    assert (found.job.attempt, found.job.generation, found.lease) == (0, 0, 0)


async def test_keys_keep_the_order_in_which_they_were_given(engine: Engine) -> None:
    args, metadata = b'{"z":{"y":1,"b":2},"a":3}', {"z": {"y": 1, "b": 2}, "a": 3}
    await submit(engine, new_job(args=args, extras=Extras(metadata=metadata)))

    job = (await claim_one(engine)).job

    assert job.args == args
    assert json.dumps(job.extras.metadata) == json.dumps(metadata)


async def test_arguments_are_opaque_bytes(engine: Engine) -> None:
    awkward = bytes(range(256)) + b"\x00'\";--\xff\xfe"
    (job_id,) = await submit(engine, new_job(args=awkward))

    taken = await claim_one(engine)

    assert taken.job.args == awkward
    assert (await record(engine, job_id)).job.args == awkward


async def test_a_job_is_due_at_the_stores_now_plus_its_delay(
    engine: Engine, clock: VirtualClock
) -> None:
    job_id, at_once = await submit(engine, new_job(delay_ms=5_000), new_job())

    assert (await record(engine, job_id)).job.due_at_ms == clock.now_ms() + 5_000
    assert (await record(engine, job_id)).status is Status.SCHEDULED
    assert (await record(engine, at_once)).job.due_at_ms == clock.now_ms()
    assert (await record(engine, at_once)).status is Status.READY


async def test_an_instant_is_kept_and_goes_before_a_delay(
    engine: Engine, clock: VirtualClock
) -> None:
    instant = clock.now_ms() + 7_654
    (job_id,) = await submit(engine, new_job(run_at_ms=instant, delay_ms=99_000))

    assert (await record(engine, job_id)).job.due_at_ms == instant


async def test_an_instant_in_the_past_means_now(engine: Engine, clock: VirtualClock) -> None:
    (job_id,) = await submit(engine, new_job(run_at_ms=clock.now_ms() - 1_000_000))

    assert (await record(engine, job_id)).job.due_at_ms == clock.now_ms()


async def test_a_job_dated_far_ahead_is_kept(engine: Engine, clock: VirtualClock) -> None:
    instant = clock.now_ms() + 200 * 365 * 86_400_000
    (job_id,) = await submit(engine, new_job(run_at_ms=instant))

    assert (await record(engine, job_id)).job.due_at_ms == instant
    assert await claim(engine) == []


async def test_an_id_that_exists_is_already_and_nothing_changes(engine: Engine) -> None:
    first = new_job(args=b'{"a": 1}')
    await submit(engine, first)
    before = await record(engine, first.id)

    again = await engine.jobs.submit([new_job(id=first.id, args=b"{}", delay_ms=60_000)])

    assert again == [Submitted(first.id, ALREADY)]
    assert await record(engine, first.id) == before
    assert await handed_out(engine, 10) == [first.id]


@pytest.mark.parametrize("hours", [-5_000, -25, 2, 30_000_000])
async def test_the_id_of_a_finished_job_is_already_whatever_time_stands_in_it(
    engine: Engine, clock: VirtualClock, hours: int
) -> None:
    made_at = clock.now_ms() + hours * 3_600_000
    first = new_job(id=compose(made_at, 7, runtime.random_bits(RANDOM_BITS)))
    await finished(engine, first)
    clock.advance(seconds=2.5 * 3_600)

    assert await engine.jobs.submit([first]) == [Submitted(first.id, ALREADY)]
    assert await handed_out(engine, 10) == []


async def test_the_id_of_a_finished_job_is_already_after_the_clock_went_back(
    engine: Engine, clock: VirtualClock
) -> None:
    first = new_job()
    await finished(engine, first)
    clock.advance(seconds=-2 * 86_400)

    assert await engine.jobs.submit([first]) == [Submitted(first.id, ALREADY)]
    assert await handed_out(engine, 10) == []


async def test_the_id_of_a_running_job_is_already(engine: Engine) -> None:
    first = new_job()
    await submit(engine, first)
    await claim_one(engine)

    assert await engine.jobs.submit([first]) == [Submitted(first.id, ALREADY)]
    assert (await record(engine, first.id)).state is JobState.RUNNING


async def test_the_id_of_a_finished_job_is_already(engine: Engine) -> None:
    job = new_job()
    await finished(engine, job)

    assert await engine.jobs.submit([job]) == [Submitted(job.id, ALREADY)]
    assert (await record(engine, job.id)).state is JobState.SUCCEEDED


async def test_equal_ids_within_one_call_make_one_job(engine: Engine) -> None:
    job = new_job()

    answers = await engine.jobs.submit([job, new_job(), job])

    assert [one.answer for one in answers] == [CREATED, CREATED, ALREADY]
    assert len(await claim(engine, 10)) == 2


async def test_the_first_use_of_a_key_creates_its_job(engine: Engine) -> None:
    job = new_job(key=key())

    assert await engine.jobs.submit([job]) == [Submitted(job.id, CREATED)]
    assert await handed_out(engine, 10) == [job.id]


async def test_a_key_with_the_same_body_is_already_with_the_existing_id(engine: Engine) -> None:
    first, second = new_job(key=key()), new_job(key=key())
    await submit(engine, first)

    assert await engine.jobs.submit([second]) == [Submitted(first.id, ALREADY)]
    assert await engine.inspector.job(second.id) is None


async def test_a_key_outlives_the_end_of_its_job(engine: Engine) -> None:
    first = new_job(key=key())
    await finished(engine, first)

    assert await engine.jobs.submit([new_job(key=key())]) == [Submitted(first.id, ALREADY)]


async def test_a_key_with_another_body_is_a_conflict(engine: Engine) -> None:
    first, second = new_job(key=key()), new_job(key=key(body="another"))
    await submit(engine, first)

    assert await engine.jobs.submit([second]) == [Submitted(first.id, CONFLICT)]
    assert await engine.inspector.job(second.id) is None


async def test_a_key_whose_job_was_pruned_is_gone_with_the_old_id(
    engine: Engine, clock: VirtualClock
) -> None:
    first = new_job(key=key())
    await finished(engine, first)
    clock.advance(seconds=3_600)
    await engine.jobs.prune(Retention(finished_ms=0), 100)
    assert await engine.inspector.job(first.id) is None

    assert await engine.jobs.submit([new_job(key=key())]) == [Submitted(first.id, GONE)]
    assert await engine.jobs.submit([first]) == [Submitted(first.id, GONE)]
    assert await claim(engine) == []


@pytest.mark.parametrize("difference", ["tenant", "scope", "key"])
async def test_a_key_is_unique_per_tenant_scope_and_key(engine: Engine, difference: str) -> None:
    other = {
        "tenant": new_job(tenant="other", key=key()),
        "scope": new_job(key=key(scope="POST /jobs")),
        "key": new_job(key=key("another key")),
    }
    await submit(engine, new_job(key=key()))

    (answer,) = await engine.jobs.submit([other[difference]])

    assert answer == Submitted(other[difference].id, CREATED)


async def test_equal_keys_within_one_call_follow_the_same_rules(engine: Engine) -> None:
    first, same, other = new_job(key=key()), new_job(key=key()), new_job(key=key(body="another"))

    answers = await engine.jobs.submit([first, same, other])

    assert answers == [
        Submitted(first.id, CREATED),
        Submitted(first.id, ALREADY),
        Submitted(first.id, CONFLICT),
    ]
    assert await handed_out(engine, 10) == [first.id]


async def test_a_lost_reply_to_a_submission_can_be_asked_for_again(engine: Engine) -> None:
    jobs = [new_job(), new_job(key=key()), new_job(key=key("other"))]
    await submit(engine, *jobs)

    again = await engine.jobs.submit(jobs)

    assert again == [Submitted(job.id, ALREADY) for job in jobs]
    assert len(await claim(engine, 10)) == 3


async def test_a_job_submitted_held_waits_until_it_is_unheld(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job(held=True))
    clock.advance(seconds=3_600)
    assert await claim(engine) == []
    assert (await record(engine, job_id)).status is Status.PAUSED

    await engine.jobs.unhold([job_id], by="test", reason="go")

    assert await handed_out(engine, 1) == [job_id]


async def test_a_submission_that_is_too_large_stores_none_of_its_jobs(engine: Engine) -> None:
    jobs = [new_job(key=key("first"))]
    jobs += [new_job() for _ in range(engine.capabilities.max_batch)]

    with pytest.raises(InvalidInput):
        await engine.jobs.submit(jobs)

    assert await claim(engine, 10) == []
    assert (await engine.jobs.submit(jobs[:1]))[0].answer is CREATED


async def test_jobs_are_handed_out_in_the_order_of_submission_not_of_their_ids(
    engine: Engine,
) -> None:
    jobs = sorted((new_job() for _ in range(20)), key=lambda job: job.id, reverse=True)
    await submit(engine, *jobs[:10])
    await submit(engine, *jobs[10:])

    assert await handed_out(engine, 20) == [job.id for job in jobs]
