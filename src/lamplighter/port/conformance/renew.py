"""Renew: a lease is extended for its owner and for nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Fence
from lamplighter.port.conformance.builders import (
    completed,
    new_id,
    record,
    released,
    rescue_and_claim_again,
    running,
    settle_one,
)
from lamplighter.port.values import Renewal, RenewAnswer, Renewed

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine


async def test_a_renewed_lease_ends_its_new_length_from_now(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=10)

    answer = await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 45_000)

    assert answer == [Renewed(taken.job.id, RenewAnswer.HELD)]
    assert (await record(engine, taken.job.id)).expires_at_ms == clock.now_ms() + 45_000
    clock.advance(ms=44_999)
    assert await engine.jobs.rescue(10) == []


async def test_renew_answers_for_each_lease_in_order(engine: Engine) -> None:
    taken = [await running(engine) for _ in range(4)]
    await settle_one(engine, completed(taken[2]))

    answers = await engine.jobs.renew([Renewal(t.job.id, t.fence) for t in taken], 30_000)

    assert [(one.id, one.held) for one in answers] == [
        (t.job.id, held) for t, held in zip(taken, [True, True, False, True], strict=True)
    ]


async def test_a_lease_that_has_ended_but_was_not_rescued_is_extended(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=300)

    (answer,) = await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)

    assert answer.held
    assert await engine.jobs.rescue(10) == []


@pytest.mark.parametrize("end", ["settled", "given back", "claimed by another", "unknown"])
async def test_a_lease_that_is_not_the_current_one_is_not_extended(
    engine: Engine, clock: VirtualClock, end: str
) -> None:
    taken = await running(engine)
    if end == "settled":
        await settle_one(engine, completed(taken))
    elif end == "given back":
        await settle_one(engine, released(taken))
    elif end == "claimed by another":
        clock.advance(seconds=31)
        await rescue_and_claim_again(engine, taken)
    job_id = new_id() if end == "unknown" else taken.job.id
    before = await engine.inspector.job(job_id)

    (answer,) = await engine.jobs.renew([Renewal(job_id, taken.fence)], 90_000)

    assert answer.answer is RenewAnswer.LOST
    assert await engine.inspector.job(job_id) == before


@pytest.mark.parametrize("wrong", ["lease", "nonce"])
async def test_both_halves_of_the_fence_are_compared_by_renew(engine: Engine, wrong: str) -> None:
    taken = await running(engine)
    fences = {
        "lease": replace(taken.fence, lease=taken.fence.lease + 1),
        "nonce": Fence(taken.fence.lease, "0" * 16),
    }

    (answer,) = await engine.jobs.renew([Renewal(taken.job.id, fences[wrong])], 90_000)

    assert answer.answer is RenewAnswer.LOST


async def test_renew_tells_of_a_cancel_request(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], by="test", reason="stop")

    answer = await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)

    assert answer == [Renewed(taken.job.id, RenewAnswer.HELD, cancel_requested=True)]


async def test_renewing_twice_is_renewing_once(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)
    lease = Renewal(taken.job.id, taken.fence)

    answers = await engine.jobs.renew([lease, lease], 40_000)

    assert all(one.held for one in answers)
    assert (await record(engine, taken.job.id)).expires_at_ms == clock.now_ms() + 40_000


async def test_more_renewals_than_a_batch_are_refused(engine: Engine) -> None:
    lease = Renewal(new_id(), Fence(1, "0" * 16))

    with pytest.raises(InvalidInput):
        await engine.jobs.renew([lease] * (engine.capabilities.max_batch + 1), 1_000)


async def test_a_renewal_does_not_change_the_fence(engine: Engine) -> None:
    taken = await running(engine)
    await engine.jobs.renew([Renewal(taken.job.id, taken.fence)], 30_000)

    found = await record(engine, taken.job.id)

    assert (found.lease, found.nonce) == (taken.fence.lease, taken.fence.nonce)
    assert (await settle_one(engine, completed(taken))).answer == "done"
