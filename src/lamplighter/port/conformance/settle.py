"""Settle: what a claim came to is written once, by its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import ALONE, ErrorInfo, Fence, JobState, Status, requirement_of
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import (
    AbandonCause,
    Abandoned,
    Cancelled,
    Held,
    Rejected,
    Released,
    Succeeded,
    TimedOut,
)
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    BOOM,
    abandoned,
    claim,
    claim_one,
    completed,
    died,
    failed,
    finished,
    handed_out,
    new_job,
    record,
    released,
    rescue_and_claim_again,
    running,
    settle_one,
    snoozed,
    submit,
)
from lamplighter.port.values import Renewal, SettleAnswer, Settled

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

DONE, ALREADY = SettleAnswer.DONE, SettleAnswer.ALREADY
LOST, RENEWED = SettleAnswer.LOST, SettleAnswer.RENEWED
BY = {"by": "test", "reason": "for the test"}


async def test_a_suspect_is_handed_only_to_who_runs_it_alone_until_it_is_replayed(
    engine: Engine,
) -> None:
    (job_id,) = await submit(engine, new_job(requirement="gpu"))
    (one,) = await claim(engine, 1, requirements=("gpu",))
    await engine.jobs.settle([settle(one, Abandoned(AbandonCause.CHILD_DIED))])
    alone = requirement_of("gpu", suspect=True)

    assert await claim(engine, 1, requirements=("", "gpu", ALONE)) == []
    (again,) = await claim(engine, 1, requirements=(alone,))
    assert again.job.suspect
    await engine.jobs.settle([settle(again, Released())])
    (third,) = await claim(engine, 1, requirements=(alone,))
    await engine.jobs.settle([settle(third, Rejected("no"))])
    await engine.jobs.replay([job_id], by="test", reason="")
    assert await claim(engine, 1, requirements=(alone,)) == []
    assert [c.job.id for c in await claim(engine, 1, requirements=("gpu",))] == [job_id]


async def test_settle_answers_for_each_claim_in_order(engine: Engine) -> None:
    await submit(engine, *(new_job() for _ in range(3)))
    first, second, third = await claim(engine, 3)

    answers = await engine.jobs.settle([completed(third), failed(first), released(second)])

    assert answers == [
        Settled(third.job.id, DONE, JobState.SUCCEEDED),
        Settled(first.job.id, DONE, JobState.WAITING),
        Settled(second.job.id, DONE, JobState.WAITING),
    ]


async def test_a_success_keeps_its_result(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)
    clock.advance(seconds=2)

    await settle_one(engine, completed(taken, b'{"total": 42}'))

    found = await record(engine, taken.job.id)
    assert (found.state, found.status) == (JobState.SUCCEEDED, Status.SUCCEEDED)
    assert (found.result, found.result_note) == (b'{"total": 42}', None)
    assert found.finished_at_ms == clock.now_ms()


async def test_a_success_without_a_result_keeps_the_note_that_says_why(engine: Engine) -> None:
    taken = await running(engine)

    await settle_one(engine, settle(taken, Succeeded(None, "the result is not JSON")))

    found = await record(engine, taken.job.id)
    assert (found.state, found.result) == (JobState.SUCCEEDED, None)
    assert found.result_note == "the result is not JSON"


async def test_a_failure_comes_back_after_its_delay(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)
    clock.advance(seconds=3)

    await settle_one(engine, failed(taken))

    found = await record(engine, taken.job.id)
    assert (found.state, found.status) == (JobState.WAITING, Status.RETRYING)
    assert (found.job.attempt, found.error) == (1, BOOM)
    assert found.job.due_at_ms == clock.now_ms() + 10_000
    clock.advance(ms=9_999)
    assert await claim(engine) == []
    clock.advance(ms=1)
    assert (await claim_one(engine)).job.attempt == 1


async def test_a_job_out_of_attempts_is_dead_with_its_reason(engine: Engine) -> None:
    taken = await died(engine)

    found = await record(engine, taken.job.id)

    assert (found.state, found.status) == (JobState.DEAD, Status.DEAD)
    assert (found.reason, found.error) == ("failed 1 of 1 attempt", BOOM)
    assert found.finished_at_ms is not None
    assert await claim(engine) == []


async def test_a_snoozed_job_costs_no_attempt(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)

    await settle_one(engine, snoozed(taken, 7))

    found = await record(engine, taken.job.id)
    assert (found.job.attempt, found.job.due_at_ms) == (0, clock.now_ms() + 7_000)
    assert found.status is Status.SCHEDULED


async def test_a_job_found_held_goes_back_and_stays_held(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.hold([taken.job.id], **BY)

    await settle_one(engine, settle(taken, Held()))

    assert (await record(engine, taken.job.id)).status is Status.PAUSED
    assert await claim(engine) == []


async def test_counters_are_written_as_the_settlement_says(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    for losses in (1, 2):
        clock.advance(seconds=31)
        taken = await rescue_and_claim_again(engine, taken)
        assert (taken.job.losses, taken.job.crashes, taken.job.attempt) == (losses, 0, 0)
    assert taken.job.suspect

    found = await record(engine, taken.job.id)

    assert found.job == taken.job


async def test_the_same_fence_again_is_already_and_changes_nothing(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    await settle_one(engine, completed(taken, b"1"))
    before = await record(engine, taken.job.id)
    clock.advance(seconds=1)

    again = await settle_one(engine, completed(taken, b"2"))

    assert again == Settled(taken.job.id, ALREADY, JobState.SUCCEEDED)
    assert await record(engine, taken.job.id) == before


async def test_the_same_fence_is_already_while_the_job_waits_again(engine: Engine) -> None:
    taken = await running(engine)
    await settle_one(engine, failed(taken))

    again = await settle_one(engine, completed(taken))

    assert again == Settled(taken.job.id, ALREADY, JobState.WAITING)
    assert (await record(engine, taken.job.id)).job.attempt == 1


async def test_the_same_fence_is_lost_once_the_job_was_claimed_again(engine: Engine) -> None:
    first = await running(engine)
    await settle_one(engine, released(first))
    second = await claim_one(engine)
    before = await record(engine, first.job.id)

    answer = await settle_one(engine, released(first))

    assert answer == Settled(first.job.id, LOST, JobState.RUNNING)
    assert await record(engine, first.job.id) == before
    assert (await settle_one(engine, completed(second))).answer is DONE


async def test_the_same_fence_is_lost_once_the_job_was_removed(engine: Engine) -> None:
    taken = await finished(engine)
    await engine.jobs.purge([taken.job.id], **BY)

    answer = await settle_one(engine, completed(taken))

    assert answer == Settled(taken.job.id, LOST, None)


async def test_equal_fences_within_one_call_settle_once(engine: Engine) -> None:
    taken = await running(engine)

    answers = await engine.jobs.settle([completed(taken, b"1"), completed(taken, b"2")])

    assert [one.answer for one in answers] == [DONE, ALREADY]
    assert (await record(engine, taken.job.id)).result == b"1"


async def test_late_settle_of_a_rescued_job_is_refused(engine: Engine, clock: VirtualClock) -> None:
    first = await running(engine)
    clock.advance(seconds=61)
    second = await rescue_and_claim_again(engine, first)

    answer = await settle_one(engine, completed(first))

    assert answer == Settled(first.job.id, LOST, JobState.RUNNING)
    found = await record(engine, first.job.id)
    assert (found.state, found.nonce) == (JobState.RUNNING, second.fence.nonce)


@pytest.mark.parametrize("wrong", ["lease", "nonce", "id"])
async def test_any_other_fence_or_an_unknown_id_is_lost(engine: Engine, wrong: str) -> None:
    taken = await running(engine)
    good = completed(taken)
    bad = {
        "lease": replace(good, fence=replace(taken.fence, lease=taken.fence.lease + 1)),
        "nonce": replace(good, fence=Fence(taken.fence.lease, "f" * 16)),
        "id": replace(good, id=new_job().id),
    }

    answer = await settle_one(engine, bad[wrong])

    assert answer.answer is LOST
    assert answer.state is (None if wrong == "id" else JobState.RUNNING)
    assert (await record(engine, taken.job.id)).state is JobState.RUNNING


async def test_a_job_never_claimed_cannot_be_settled(engine: Engine) -> None:
    taken = await running(engine)
    (waiting,) = await submit(engine, new_job())

    answer = await settle_one(engine, replace(completed(taken), id=waiting))

    assert answer == Settled(waiting, LOST, JobState.WAITING)


async def test_a_lost_settlement_does_not_harm_the_others_of_its_call(engine: Engine) -> None:
    good = await running(engine)
    bad = replace(completed(good), id=new_job().id)

    answers = await engine.jobs.settle([bad, completed(good), bad])

    assert [one.answer for one in answers] == [LOST, DONE, LOST]


async def test_a_settle_after_the_lease_ended_but_before_rescue_is_accepted(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=3_600)

    assert (await settle_one(engine, completed(taken))).answer is DONE


async def test_settle_for_rescue_leaves_a_renewed_lease_alone(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=31)
    await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)

    answer = await settle_one(engine, abandoned(taken))

    assert answer == Settled(taken.job.id, RENEWED, JobState.RUNNING)
    assert (await record(engine, taken.job.id)).job.losses == 0


async def test_settle_for_rescue_takes_a_lease_at_the_instant_it_ends(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(ms=29_999)
    assert (await settle_one(engine, abandoned(taken))).answer is RENEWED

    clock.advance(ms=1)

    assert (await settle_one(engine, abandoned(taken))).answer is DONE


async def test_settle_for_rescue_of_a_settled_job_is_already(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await finished(engine)
    clock.advance(seconds=31)

    answer = await settle_one(engine, abandoned(taken))

    assert answer == Settled(taken.job.id, ALREADY, JobState.SUCCEEDED)


async def test_a_failed_attempt_leaves_a_row_of_history(
    engine: Engine, clock: VirtualClock
) -> None:
    started = clock.now_ms()
    taken = await running(engine)
    clock.advance(seconds=2)
    await settle_one(engine, failed(taken))
    ended = clock.now_ms()
    clock.advance(seconds=10)
    again = await claim_one(engine)
    clock.advance(seconds=1)
    await settle_one(engine, settle(again, TimedOut(replace(BOOM, type="TimeoutError"))))

    first, second = await engine.inspector.attempts(taken.job.id)

    assert (first.job_id, first.generation, first.lease) == (taken.job.id, 0, 1)
    assert (first.outcome, first.worker, first.error) == ("failed", taken.worker, BOOM)
    assert (first.started_at_ms, first.finished_at_ms) == (started, ended)
    assert first.nonce == taken.fence.nonce
    assert (second.outcome, second.lease, second.nonce) == ("timed_out", 2, again.fence.nonce)
    assert (first.number, second.number) == (1, 2)


@pytest.mark.parametrize("how", ["released", "snoozed", "held"])
async def test_an_attempt_that_was_given_back_without_history_is_not_kept(
    engine: Engine, how: str
) -> None:
    taken = await running(engine)
    ends = {
        "released": released(taken),
        "snoozed": snoozed(taken, 5),
        "held": settle(taken, Held()),
    }

    await settle_one(engine, ends[how])

    assert await engine.inspector.attempts(taken.job.id) == []


async def test_a_settle_that_was_refused_leaves_no_row_of_history(engine: Engine) -> None:
    taken = await running(engine)
    await settle_one(engine, released(taken))

    await settle_one(engine, failed(taken))

    assert await engine.inspector.attempts(taken.job.id) == []


@pytest.mark.parametrize("state", [JobState.WAITING, JobState.SUCCEEDED])
async def test_a_settled_job_belongs_to_no_worker_any_more(
    engine: Engine, clock: VirtualClock, state: JobState
) -> None:
    taken = await running(engine)
    outcome = completed(taken) if state is JobState.SUCCEEDED else released(taken)

    await settle_one(engine, outcome)

    found = await record(engine, taken.job.id)
    assert (found.state, found.expires_at_ms) == (state, None)
    clock.advance(seconds=3_600)
    assert await engine.jobs.rescue(10) == []
    assert await engine.jobs.claims_of(taken.worker) == []
    (renewed,) = await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)
    assert not renewed.held


async def test_a_cancel_request_does_not_outlive_its_settle(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], **BY)
    await settle_one(engine, failed(taken))
    await engine.jobs.replay([taken.job.id], **BY)

    again = await claim_one(engine)

    (renewed,) = await engine.jobs.renew([Renewal(again.job.id, again.fence)], 30_000)
    assert not renewed.cancel_requested
    assert (await settle_one(engine, failed(again))).state is JobState.WAITING


@pytest.mark.parametrize("outcome", ["failed", "released", "snoozed", "rejected", "cancelled"])
async def test_a_requested_cancel_decides_what_is_not_a_success(
    engine: Engine, outcome: str
) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], **BY)
    settlement = {
        "failed": failed(taken),
        "released": released(taken),
        "snoozed": snoozed(taken, 5),
        "rejected": settle(taken, Rejected("no")),
        "cancelled": settle(taken, Cancelled()),
    }[outcome]

    answer = await settle_one(engine, settlement)

    assert answer == Settled(taken.job.id, DONE, JobState.CANCELLED)
    found = await record(engine, taken.job.id)
    assert found.state is JobState.CANCELLED
    assert found.reason
    assert await claim(engine) == []


async def test_a_success_stands_although_a_cancel_was_requested(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], **BY)

    answer = await settle_one(engine, completed(taken))

    assert answer == Settled(taken.job.id, DONE, JobState.SUCCEEDED)


async def test_content_never_makes_a_settle_fail(engine: Engine) -> None:
    awkward = "\x00 \ud800 \udfff ' \" -- \N{BUG} \x1b[31m" + "x" * 200_000
    error = ErrorInfo(
        type=awkward[:50],
        message=awkward,
        traceback=awkward,
        fingerprint=awkward[:50],
        kinds=(awkward[:50],),
    )
    await submit(engine, *(new_job() for _ in range(3)))
    first, second, third = await claim(engine, 3)

    answers = await engine.jobs.settle(
        [
            failed(first, error, retry=Retry(max_attempts=1)),
            settle(second, Rejected(awkward, error)),
            settle(third, Succeeded(b"\x00\xff not json", awkward)),
        ]
    )

    assert [one.answer for one in answers] == [DONE] * 3
    for taken in (first, second):
        found = await record(engine, taken.job.id)
        assert found.error is not None
        assert "x" in found.error.message
        assert found.error.message.encode("utf-8")
    assert (await record(engine, third.job.id)).result == b"\x00\xff not json"
    assert len(await engine.inspector.attempts(first.job.id)) == 1


async def test_more_settlements_than_a_batch_are_refused_before_anything_is_written(
    engine: Engine,
) -> None:
    taken = await running(engine)

    with pytest.raises(InvalidInput):
        await engine.jobs.settle([completed(taken)] * (engine.capabilities.max_batch + 1))

    assert (await record(engine, taken.job.id)).state is JobState.RUNNING


async def test_a_settled_job_comes_back_once(engine: Engine) -> None:
    taken = await running(engine)

    await engine.jobs.settle([released(taken), released(taken)])

    assert await handed_out(engine, 10) == [taken.job.id]


async def test_going_back_without_an_error_keeps_the_last_one(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    await settle_one(engine, failed(taken))
    error = (await record(engine, taken.job.id)).error
    assert error is not None
    clock.advance(seconds=3_600)
    again = await claim_one(engine)

    await settle_one(engine, released(again))

    assert (await record(engine, taken.job.id)).error == error
