"""Start marks: what an at-most-once job's claim comes to depends on whether its handler may have
been called; and which claimed jobs are shown as such.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.filters import Filter
from lamplighter.model.job import Delivery, Fence, JobState, Status
from lamplighter.model.journal import Journal, Progress
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Abandoned
from lamplighter.port.conformance.builders import (
    abandoned,
    claim,
    claim_one,
    completed,
    logged,
    mark_start,
    new_id,
    new_job,
    pieces,
    record,
    recording,
    released,
    request,
    running,
    settle_one,
    snoozed,
    spread,
    submit,
)
from lamplighter.port.values import NewWorker, Recorded, Recording, Renewal, SettleAnswer, Settled

if TYPE_CHECKING:
    from lamplighter.model.job import Claim, NewJob
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}
STARTED = SettleAnswer.STARTED
WORKER = NewWorker(id="worker-1", host="here", pid=1, queues=("default",), slots=10)


def once() -> NewJob:
    """Make a job that may start only once."""
    return new_job(delivery=Delivery.AT_MOST_ONCE)


async def _expired(engine: Engine) -> list[Claim]:
    return [one.claim for one in await engine.jobs.rescue(10)]


# ── what becomes of a claim whose lease has ended ────────────────────────────────────────────


async def test_an_at_most_once_job_that_never_started_is_handed_out_again(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine, once())
    clock.advance(seconds=31)
    (found,) = await _expired(engine)
    assert not found.started

    answer = await settle_one(engine, abandoned(found))

    assert answer == Settled(taken.job.id, SettleAnswer.DONE, JobState.WAITING)
    again = await claim_one(engine)
    assert again.job.id == taken.job.id
    assert (again.job.losses, again.job.suspect) == (0, False)
    attempts = await engine.inspector.attempts(taken.job.id)
    assert [one.outcome for one in attempts] == ["running"]


async def test_an_at_most_once_job_that_started_is_dead(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine, once())
    assert await mark_start(engine, taken)
    clock.advance(seconds=31)
    (found,) = await _expired(engine)
    assert found == replace(taken, started=True)

    answer = await settle_one(engine, abandoned(found))

    assert answer == Settled(taken.job.id, SettleAnswer.DONE, JobState.DEAD)
    assert await claim(engine, 1) == []


async def test_a_mark_that_came_after_rescue_looked_wins(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine, once())
    clock.advance(seconds=31)
    (found,) = await _expired(engine)
    assert await mark_start(engine, taken)

    answer = await settle_one(engine, abandoned(found))

    assert answer == Settled(taken.job.id, STARTED, JobState.RUNNING)
    (again,) = await _expired(engine)
    assert again.started
    assert (await settle_one(engine, abandoned(again))).state is JobState.DEAD


async def test_a_claim_that_was_given_back_cannot_be_marked(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine, once())
    clock.advance(seconds=31)
    (found,) = await _expired(engine)
    await settle_one(engine, abandoned(found))

    assert not await mark_start(engine, taken)
    second = await claim_one(engine)
    assert not await mark_start(engine, taken)
    assert await mark_start(engine, second)


async def test_a_settle_only_if_unstarted_of_several_leaves_the_started_ones_alone(
    engine: Engine,
) -> None:
    jobs = spread([once() for _ in range(4)])
    await submit(engine, *jobs)
    taken = await claim(engine, 4)
    marked = taken[1:3]
    await engine.jobs.record([Recording(one.job.id, one.fence, started=True) for one in marked])

    answers = await engine.jobs.settle([settle(one, Abandoned()) for one in taken])

    assert [answer.answer for answer in answers] == [
        STARTED if one in marked else SettleAnswer.DONE for one in taken
    ]
    assert [answer.state for answer in answers] == [
        JobState.RUNNING if one in marked else JobState.WAITING for one in taken
    ]


async def test_a_requested_cancel_ends_a_claim_that_never_started(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine, once())
    await engine.jobs.cancel([taken.job.id], **BY)
    clock.advance(seconds=31)
    (found,) = await _expired(engine)

    assert (await settle_one(engine, abandoned(found))).state is JobState.CANCELLED


async def test_a_refused_settle_of_a_started_claim_keeps_no_journal(engine: Engine) -> None:
    taken = await running(engine, once())
    await mark_start(engine, taken)
    said = replace(settle(taken, Abandoned()), journal=Journal(pieces=pieces("no")))

    assert (await settle_one(engine, said)).answer is STARTED
    assert await logged(engine, taken.job.id) == []


# ── the mark ─────────────────────────────────────────────────────────────────────────────────


async def test_marks_are_answered_for_each_in_order(engine: Engine) -> None:
    await submit(engine, *spread([once(), once()]))
    first, second = await claim(engine, 2)
    unknown = Recording(new_id(), first.fence, started=True)
    marks = [Recording(one.job.id, one.fence, started=True) for one in (second, first)]

    answers = await engine.jobs.record([marks[0], unknown, marks[1]])

    assert answers == [
        Recorded(second.job.id, held=True),
        Recorded(unknown.id, held=False),
        Recorded(first.job.id, held=True),
    ]
    held = await engine.jobs.claims_of(first.worker)
    assert all(one.started for one in held)


@pytest.mark.parametrize("wrong", ["lease", "nonce"])
async def test_nothing_is_marked_under_another_fence(engine: Engine, wrong: str) -> None:
    taken = await running(engine, once())
    fence = taken.fence
    other = (
        Fence(fence.lease, "f" * 16) if wrong == "nonce" else Fence(fence.lease + 1, fence.nonce)
    )

    assert not await mark_start(engine, replace(taken, fence=other))

    assert await engine.jobs.claims_of(taken.worker) == [taken]


async def test_marked_twice_is_marked_once(engine: Engine) -> None:
    taken = await running(engine, once())

    assert await mark_start(engine, taken)
    assert await mark_start(engine, taken)

    assert await engine.jobs.claims_of(taken.worker) == [replace(taken, started=True)]


async def test_a_claim_that_is_repeated_is_told_without_its_mark(engine: Engine) -> None:
    await submit(engine, once())
    asked = request()
    (taken,) = (await engine.jobs.claim(asked)).claims
    await mark_start(engine, taken)

    assert (await engine.jobs.claim(asked)).claims == [taken]


async def test_a_mark_and_news_go_together(engine: Engine) -> None:
    taken = await running(engine, once())
    half = Progress(done=1, total=2)
    said = replace(recording(taken, "a"), started=True)
    said = replace(said, journal=replace(said.journal, progress=half))

    await engine.jobs.record([said])

    assert (await record(engine, taken.job.id)).progress == half
    assert await logged(engine, taken.job.id) == ["a"]
    (held,) = await engine.jobs.claims_of(taken.worker)
    assert held.started


async def test_news_do_not_mark_and_leave_a_mark(engine: Engine) -> None:
    taken = await running(engine, once())
    await engine.jobs.record([recording(taken, "a")])
    assert await engine.jobs.claims_of(taken.worker) == [taken]

    await mark_start(engine, taken)
    await engine.jobs.record([recording(taken, "b")])

    assert await engine.jobs.claims_of(taken.worker) == [replace(taken, started=True)]


async def test_a_renewal_of_another_length_leaves_the_mark(engine: Engine) -> None:
    taken = await running(engine, once())
    await mark_start(engine, taken)

    await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 90_000)

    assert await engine.jobs.claims_of(taken.worker) == [replace(taken, started=True)]


@pytest.mark.parametrize("how", ["snoozed", "replayed"])
async def test_the_next_claim_has_no_mark(engine: Engine, how: str) -> None:
    taken = await running(engine, once())
    await mark_start(engine, taken)
    await settle_one(engine, snoozed(taken, 0) if how == "snoozed" else completed(taken))
    if how == "replayed":
        await engine.jobs.replay([taken.job.id], **BY)

    again = await claim_one(engine)

    assert await engine.jobs.claims_of(again.worker) == [again]
    assert (await record(engine, taken.job.id)).status is Status.CLAIMED


# ── what is shown ────────────────────────────────────────────────────────────────────────────


async def test_an_at_most_once_job_is_shown_as_claimed_until_its_start_is_marked(
    engine: Engine,
) -> None:
    taken = await running(engine, once())
    assert (await record(engine, taken.job.id)).status is Status.CLAIMED

    await mark_start(engine, taken)

    assert (await record(engine, taken.job.id)).status is Status.RUNNING


async def test_a_claimed_job_that_is_to_be_cancelled_is_shown_as_cancelling(
    engine: Engine,
) -> None:
    taken = await running(engine, once())
    await engine.jobs.cancel([taken.job.id], **BY)

    assert (await record(engine, taken.job.id)).status is Status.CANCELLING


@pytest.mark.parametrize("holder", ["worker-1", "worker-1/c0"])
async def test_other_jobs_are_shown_as_claimed_while_their_worker_says_so(
    engine: Engine, holder: str
) -> None:
    await engine.membership.join(WORKER)
    await submit(engine, *spread([new_job(), new_job()]))
    first, second = await claim(engine, 2, worker=holder)
    assert await _statuses(engine, first, second) == ["running", "running"]

    await engine.membership.beat("worker-1", 1, [first.job.id])
    assert await _statuses(engine, first, second) == ["claimed", "running"]

    await engine.membership.beat("worker-1", 2)
    assert await _statuses(engine, first, second) == ["running", "running"]


async def test_what_a_worker_says_of_jobs_that_others_hold_is_not_shown(engine: Engine) -> None:
    await engine.membership.join(WORKER)
    await submit(engine, new_job(), once())
    plain, marked = await claim(engine, 2, worker="worker-2")
    await mark_start(engine, marked)

    await engine.membership.beat("worker-1", 0, [plain.job.id, marked.job.id])

    assert await _statuses(engine, plain, marked) == ["running", "running"]


async def test_a_start_mark_is_believed_before_what_the_worker_said(engine: Engine) -> None:
    await engine.membership.join(WORKER)
    taken = await running(engine, once())
    await mark_start(engine, taken)

    await engine.membership.beat("worker-1", 0, [taken.job.id])

    assert await _statuses(engine, taken) == ["running"]


async def test_a_job_that_its_worker_gave_back_is_no_longer_shown_as_claimed(
    engine: Engine,
) -> None:
    await engine.membership.join(WORKER)
    taken = await running(engine)
    await engine.membership.beat("worker-1", 0, [taken.job.id])

    await settle_one(engine, released(taken))

    assert await _statuses(engine, taken) == ["ready"]


async def test_claimed_jobs_are_found_as_such_and_among_those_that_run(engine: Engine) -> None:
    await engine.membership.join(WORKER)
    jobs = spread([new_job(), new_job(), once(), once()])
    await submit(engine, *jobs, new_job(delay_ms=60_000))
    await claim(engine, 4)
    marked = [one for one in await engine.jobs.claims_of("worker-1") if one.job.id == jobs[3].id]
    await mark_start(engine, marked[0])
    await engine.membership.beat("worker-1", 2, [jobs[0].id])

    assert await _found(engine, "claimed") == {jobs[0].id, jobs[2].id}
    assert await _found(engine, "running") == {job.id for job in jobs}
    assert await _found(engine, "claimed", "scheduled") > {jobs[0].id, jobs[2].id}
    explained = await engine.inspector.explain(jobs[2].id)
    assert explained is not None
    assert explained.record.status is Status.CLAIMED


async def _statuses(engine: Engine, *taken: Claim) -> list[str]:
    listed = {one.job.id: one for one in (await engine.inspector.jobs(Filter(), limit=50)).jobs}
    alone = [await record(engine, one.job.id) for one in taken]
    assert alone == [listed[one.job.id] for one in taken]
    return [one.status.value for one in alone]


async def _found(engine: Engine, *statuses: str) -> set[str]:
    page = await engine.inspector.jobs(Filter(statuses=statuses), limit=50)
    return {one.job.id for one in page.jobs}
