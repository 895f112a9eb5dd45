"""Rescue: read the claims whose lease has ended, and what a worker holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import (
    abandoned,
    claim,
    claim_one,
    completed,
    finished,
    new_job,
    record,
    released,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import Renewal

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine


async def test_rescue_reads_a_lease_from_the_instant_it_ends(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(ms=29_999)
    assert await engine.jobs.rescue(10) == []

    clock.advance(ms=1)

    (expired,) = await engine.jobs.rescue(10)
    assert (expired.claim, expired.overdue_ms) == (taken, 0)


async def test_rescue_gives_the_longest_overdue_first(engine: Engine, clock: VirtualClock) -> None:
    await submit(engine, *(new_job() for _ in range(3)))
    late, later, latest = [await claim_one(engine, lease_ms=ms) for ms in (9_000, 5_000, 1_000)]
    clock.advance(seconds=10)

    expired = await engine.jobs.rescue(10)

    assert [one.claim.job.id for one in expired] == [t.job.id for t in (latest, later, late)]
    assert [one.overdue_ms for one in expired] == [9_000, 5_000, 1_000]


async def test_rescue_reads_at_most_its_limit(engine: Engine, clock: VirtualClock) -> None:
    await submit(engine, *(new_job() for _ in range(5)))
    await claim(engine, 5)
    clock.advance(seconds=31)

    assert len(await engine.jobs.rescue(2)) == 2


async def test_rescue_changes_nothing(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)
    clock.advance(seconds=31)
    before = await record(engine, taken.job.id)

    first, second = await engine.jobs.rescue(10), await engine.jobs.rescue(10)

    assert first == second
    assert await record(engine, taken.job.id) == before
    assert (await settle_one(engine, completed(taken))).answer == "done"


async def test_a_rescued_job_is_run_again_by_another_worker(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=31)
    (expired,) = await engine.jobs.rescue(10)

    await settle_one(engine, abandoned(expired.claim))

    found = await record(engine, taken.job.id)
    assert (found.state, found.job.losses, found.job.attempt) == (JobState.WAITING, 1, 0)
    assert found.job.due_at_ms == clock.now_ms() + 500
    clock.advance(seconds=1)
    (again,) = await claim(engine, worker="worker-2")
    assert (again.job.id, again.fence.lease) == (taken.job.id, 2)


async def test_finished_and_released_jobs_are_not_rescued(
    engine: Engine, clock: VirtualClock
) -> None:
    await finished(engine)
    await settle_one(engine, released(await running(engine)))
    clock.advance(seconds=3_600)

    assert await engine.jobs.rescue(10) == []


async def test_a_batch_of_renewed_leases_does_not_hide_the_rest(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, *(new_job() for _ in range(6)))
    claims = await claim(engine, 6)
    clock.advance(seconds=31)
    await engine.jobs.renew([Renewal(t.job.id, t.fence) for t in claims[:5]], 30_000)

    assert [one.claim for one in await engine.jobs.rescue(1)] == [claims[5]]


async def test_a_lease_that_ends_too_late_is_cut_when_the_clock_went_back(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    clock.advance(seconds=-3_600)

    assert await engine.jobs.rescue(10) == []

    assert (await record(engine, taken.job.id)).expires_at_ms == clock.now_ms() + 30_000
    clock.advance(seconds=30)
    assert len(await engine.jobs.rescue(10)) == 1


async def test_a_lease_is_cut_to_its_own_length(engine: Engine, clock: VirtualClock) -> None:
    await submit(engine, new_job(), new_job())
    short, renewed = await claim_one(engine, lease_ms=5_000), await claim_one(engine)
    await engine.jobs.renew([Renewal(renewed.job.id, renewed.fence)], 90_000)
    clock.advance(seconds=-600)

    await engine.jobs.rescue(10)

    assert (await record(engine, short.job.id)).expires_at_ms == clock.now_ms() + 5_000
    assert (await record(engine, renewed.job.id)).expires_at_ms == clock.now_ms() + 90_000


async def test_a_lease_that_was_not_stretched_is_not_cut(
    engine: Engine, clock: VirtualClock
) -> None:
    taken = await running(engine)
    ends = clock.now_ms() + 30_000
    clock.advance(seconds=10)

    await engine.jobs.rescue(10)

    assert (await record(engine, taken.job.id)).expires_at_ms == ends


async def test_claims_of_a_worker_are_what_it_holds(engine: Engine) -> None:
    await submit(engine, *(new_job() for _ in range(4)))
    mine = await claim(engine, 3, worker="mine")
    await claim(engine, 1, worker="other")
    await settle_one(engine, completed(mine[1]))

    held = await engine.jobs.claims_of("mine")

    assert sorted(held, key=lambda one: one.handout) == [mine[0], mine[2]]
    assert await engine.jobs.claims_of("nobody") == []
