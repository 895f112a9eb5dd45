"""Claim: who gets what, under which fence, and when to ask again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter import runtime
from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import (
    LEASE_MS,
    claim,
    claim_one,
    completed,
    failed,
    handed_out,
    is_poll,
    new_job,
    record,
    released,
    request,
    settle_one,
    submit,
    with_quotas,
)
from lamplighter.port.values import QueueSettings, TenantSettings, TypeSettings

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}


async def test_a_claim_hands_out_at_most_its_limit(engine: Engine) -> None:
    ids = await submit(engine, *(new_job() for _ in range(5)))

    assert await handed_out(engine, 3) == ids[:3]
    assert await handed_out(engine, 3) == ids[3:]
    assert await handed_out(engine, 3) == []


async def test_a_claim_of_an_empty_store_gives_nothing_and_no_time(engine: Engine) -> None:
    answer = await engine.jobs.claim(request(limit=10))

    assert (answer.claims, answer.poll_after_ms) == ([], None)


async def test_a_claimed_job_runs_under_its_worker_and_fence(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job())
    asked = request(worker="worker-7")

    (taken,) = (await engine.jobs.claim(asked)).claims

    assert (taken.fence.nonce, taken.fence.lease, taken.worker) == (asked.nonce, 1, "worker-7")
    found = await record(engine, job_id)
    assert found.state is JobState.RUNNING
    assert (found.lease, found.nonce, found.worker) == (1, asked.nonce, "worker-7")
    assert found.claimed_at_ms == clock.now_ms()
    assert found.handout == taken.handout
    assert found.job == taken.job


async def test_a_lease_ends_its_length_from_the_stores_now(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job())
    clock.advance(seconds=3)

    await engine.jobs.claim(request(lease_ms=12_345))

    assert (await record(engine, job_id)).expires_at_ms == clock.now_ms() + 12_345


async def test_each_claim_raises_the_lease_number_by_one(engine: Engine) -> None:
    await submit(engine, new_job())
    leases: list[int] = []
    for _ in range(4):
        taken = await claim_one(engine)
        leases.append(taken.fence.lease)
        await settle_one(engine, released(taken))

    assert leases == [1, 2, 3, 4]


async def test_each_hand_out_carries_the_next_number_of_its_queue(engine: Engine) -> None:
    for queue in ("a", "b"):
        await submit(engine, *(new_job(queue=queue) for _ in range(4)))

    numbers = {
        queue: [t.handout for _ in range(2) for t in await claim(engine, 2, queue)]
        for queue in ("a", "b")
    }

    assert numbers == {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4]}


async def test_a_job_is_not_handed_out_before_it_is_due(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job(delay_ms=5_000))
    clock.advance(ms=4_999)
    assert await claim(engine) == []

    clock.advance(ms=1)

    assert await handed_out(engine, 1) == [job_id]


async def test_a_due_job_is_not_due_any_more_when_the_clock_went_back(
    engine: Engine, clock: VirtualClock
) -> None:
    first, second = await submit(engine, new_job(delay_ms=5_000), new_job(delay_ms=5_000))
    clock.advance(seconds=5)
    assert await handed_out(engine, 1) == [first]
    clock.advance(seconds=-2)

    answer = await engine.jobs.claim(request())

    assert (answer.claims, answer.poll_after_ms) == ([], 2_000)
    clock.advance(seconds=2)
    assert await handed_out(engine, 1) == [second]


async def test_types_that_were_not_asked_for_stay_where_they_are(engine: Engine) -> None:
    unknown, known = await submit(engine, new_job("other"), new_job("work"))

    assert await handed_out(engine, 10) == [known]
    assert (await record(engine, unknown)).state is JobState.WAITING
    assert [t.job.id for t in await claim(engine, 10, types=("other", "work"))] == [unknown]


async def test_queues_that_were_not_asked_for_stay_where_they_are(engine: Engine) -> None:
    here, there = await submit(engine, new_job(queue="here"), new_job(queue="there"))

    assert await handed_out(engine, 10, "here") == [here]
    assert await handed_out(engine, 10, "there") == [there]


async def test_queues_and_types_nobody_ever_used_are_no_error(engine: Engine) -> None:
    answer = await engine.jobs.claim(request("nowhere", types=("nothing",), limit=5))

    assert (answer.claims, answer.poll_after_ms) == ([], None)


async def test_only_jobs_whose_requirement_is_met_are_handed_out(engine: Engine) -> None:
    plain, special = await submit(engine, new_job(), new_job(requirement="gpu"))

    assert await handed_out(engine, 10) == [plain]
    assert (await record(engine, special)).state is JobState.WAITING

    answer = await engine.jobs.claim(request(limit=10, requirements=("", "gpu")))

    assert [taken.job.id for taken in answer.claims] == [special]


async def test_a_held_job_is_stepped_over(engine: Engine) -> None:
    first, second = await submit(engine, new_job(), new_job())
    await engine.jobs.hold([first], **BY)

    assert await handed_out(engine, 10) == [second]


@pytest.mark.parametrize("what", ["queue", "type", "tenant"])
async def test_jobs_of_a_held_queue_type_or_tenant_are_not_handed_out(
    engine: Engine, what: str
) -> None:
    held = new_job("still", queue="still", tenant="still")
    (job_id,) = await submit(engine, held)
    await _hold(engine, what, held=True)

    answer = await engine.jobs.claim(request("still", types=("still",), limit=10))
    assert (answer.claims, answer.poll_after_ms) == ([], None)

    await _hold(engine, what, held=False)
    assert [t.job.id for t in await claim(engine, 10, "still", types=("still",))] == [job_id]


@pytest.mark.parametrize("what", ["queue", "type", "tenant"])
async def test_a_hold_leaves_the_others_alone(engine: Engine, what: str) -> None:
    others = [
        new_job("free", queue="still", tenant="free"),
        new_job("still", queue="free", tenant="free"),
        new_job("free", queue="free", tenant="still"),
    ]
    await submit(engine, new_job("still", queue="still", tenant="still"), *others)
    await _hold(engine, what, held=True)

    taken = await claim(engine, 10, "still", "free", types=("still", "free"))

    expected = {job.id for job in others if getattr(job, what) != "still"}
    assert {one.job.id for one in taken} == expected


async def test_no_job_is_handed_out_twice(engine: Engine) -> None:
    ids = await submit(engine, *(new_job() for _ in range(30)))

    taken = [job_id for _ in range(10) for job_id in await handed_out(engine, 4)]

    assert taken == ids


async def test_a_claim_repeated_with_its_nonce_gives_the_jobs_still_running_under_it(
    engine: Engine,
) -> None:
    await submit(engine, *(new_job() for _ in range(6)))
    asked = request(limit=3)
    first = (await engine.jobs.claim(asked)).claims

    again = (await engine.jobs.claim(asked)).claims
    assert again == first

    await settle_one(engine, completed(first[1]))
    assert (await engine.jobs.claim(asked)).claims == [first[0], first[2]]
    assert len(await claim(engine, 10)) == 3


async def test_a_claim_repeated_after_all_its_jobs_were_settled_gives_nothing(
    engine: Engine,
) -> None:
    await submit(engine, new_job(), new_job())
    asked = request()
    (taken,) = (await engine.jobs.claim(asked)).claims
    await settle_one(engine, completed(taken))

    again = await engine.jobs.claim(asked)

    assert (again.claims, again.poll_after_ms) == ([], 0)
    assert len(await claim(engine, 10)) == 1


async def test_a_repeat_of_a_claim_that_got_nothing_is_a_new_claim(engine: Engine) -> None:
    asked = request(limit=2)
    assert (await engine.jobs.claim(asked)).claims == []
    assert (await engine.jobs.claim(asked)).poll_after_ms is None
    ids = await submit(engine, *(new_job() for _ in range(3)))

    taken = (await engine.jobs.claim(asked)).claims

    assert [one.job.id for one in taken] == ids[:2]
    assert {one.fence.nonce for one in taken} == {asked.nonce}
    assert (await engine.jobs.claim(asked)).claims == taken
    assert await handed_out(engine, 10) == ids[2:]


async def test_a_repeated_claim_says_to_ask_again_at_once(engine: Engine) -> None:
    await submit(engine, new_job())
    asked = request(limit=2)
    assert (await engine.jobs.claim(asked)).poll_after_ms is None

    assert (await engine.jobs.claim(asked)).poll_after_ms == 0


async def test_a_repeated_claim_does_not_extend_the_lease(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job())
    asked = request()
    await engine.jobs.claim(asked)
    ends = clock.now_ms() + LEASE_MS
    clock.advance(seconds=5)

    await engine.jobs.claim(asked)

    found = await record(engine, job_id)
    assert (found.lease, found.expires_at_ms) == (1, ends)


async def test_a_repeated_claim_does_not_give_a_job_claimed_by_another_since(
    engine: Engine,
) -> None:
    await submit(engine, new_job(), new_job())
    asked = request(limit=2)
    kept, lost = (await engine.jobs.claim(asked)).claims
    await settle_one(engine, released(lost))
    await claim_one(engine)

    assert (await engine.jobs.claim(asked)).claims == [kept]


async def test_poll_after_is_the_time_until_the_next_job_falls_due(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, new_job(delay_ms=9_000), new_job(delay_ms=4_000), new_job())
    assert (await engine.jobs.claim(request(limit=10))).poll_after_ms == 4_000

    clock.advance(ms=1_500)

    assert (await engine.jobs.claim(request(limit=10))).poll_after_ms == 2_500


async def test_poll_after_looks_at_asked_for_jobs_only(engine: Engine) -> None:
    await submit(
        engine,
        new_job(delay_ms=1_000, queue="other"),
        new_job("other", delay_ms=2_000),
        new_job(delay_ms=3_000, requirement="gpu"),
    )
    assert (await engine.jobs.claim(request())).poll_after_ms is None

    await submit(engine, new_job(delay_ms=4_000))

    assert (await engine.jobs.claim(request())).poll_after_ms == 4_000


async def test_poll_after_looks_at_every_asked_queue_and_level(engine: Engine) -> None:
    await submit(engine, new_job(delay_ms=5_000), new_job(delay_ms=2_000, queue="other"))

    answer = await engine.jobs.claim(request("default", "other"))

    assert answer.poll_after_ms == 2_000


@pytest.mark.parametrize("what", ["queue", "type", "tenant"])
async def test_poll_after_does_not_count_what_is_held(engine: Engine, what: str) -> None:
    await submit(engine, new_job("still", queue="still", tenant="still", delay_ms=1_000))
    await _hold(engine, what, held=True)
    asked = request("still", types=("still",))
    assert (await engine.jobs.claim(asked)).poll_after_ms is None

    await _hold(engine, what, held=False)

    again = replace(asked, nonce=runtime.nonce())
    assert (await engine.jobs.claim(again)).poll_after_ms == 1_000


async def test_poll_after_does_not_count_a_held_job(engine: Engine) -> None:
    held, _ = await submit(engine, new_job(delay_ms=1_000), new_job(delay_ms=5_000))
    await engine.jobs.hold([held], **BY)

    assert (await engine.jobs.claim(request())).poll_after_ms == 5_000


async def test_poll_after_follows_a_job_that_will_be_retried(engine: Engine) -> None:
    await submit(engine, new_job())
    await settle_one(engine, failed(await claim_one(engine)))

    assert (await engine.jobs.claim(request())).poll_after_ms == 10_000


async def test_asking_as_often_as_told_drains_many_tenants_falling_due(
    engine: Engine, clock: VirtualClock
) -> None:
    ids = await submit(
        engine, *(new_job(tenant=f"tenant {n:03}", delay_ms=1_000) for n in range(300))
    )
    clock.advance(seconds=1)
    taken: list[str] = []
    while True:
        answer = await engine.jobs.claim(request(limit=200))
        taken += [one.job.id for one in answer.claims]
        if not answer.claims and answer.poll_after_ms is None:
            break
        assert answer.claims or answer.poll_after_ms == 0

    assert sorted(taken) == sorted(ids)


async def test_nothing_more_is_handed_out_once_the_arguments_come_to_the_bytes(
    engine: Engine,
) -> None:
    ids = await submit(engine, *(new_job(args=b"x" * 100) for _ in range(7)))

    sizes = (101, 200, 201)
    taken = [(await engine.jobs.claim(request(limit=10, max_bytes=size))).claims for size in sizes]

    assert [[one.job.id for one in each] for each in taken] == [ids[:2], ids[2:4], ids[4:]]


@pytest.mark.parametrize("size", [0, 1, 10_000])
async def test_one_job_is_handed_out_however_large_it_is(engine: Engine, size: int) -> None:
    large, small = await submit(engine, new_job(args=b"x" * 50_000), new_job())
    asked = request(limit=10, max_bytes=size)

    assert [one.job.id for one in (await engine.jobs.claim(asked)).claims] == [large]
    assert await handed_out(engine, 10) == [small]


async def test_arguments_without_a_byte_do_not_count(engine: Engine) -> None:
    ids = await submit(engine, *(new_job(args=b"") for _ in range(3)))

    answer = await engine.jobs.claim(request(limit=10, max_bytes=1))

    assert [one.job.id for one in answer.claims] == ids


async def test_bytes_count_over_all_queues_of_a_claim(engine: Engine) -> None:
    for queue in ("a", "b"):
        await submit(engine, *(new_job(queue=queue, args=b"x" * 100) for _ in range(3)))
    asked = request("a", "b", limit=10, max_bytes=350)

    first = await engine.jobs.claim(with_quotas(asked, ("a", 2), ("b", 1)))
    rest = await engine.jobs.claim(request("a", "b", limit=10))

    assert sorted(one.job.queue for one in first.claims) == ["a", "a", "a", "b"]
    assert [one.job.queue for one in rest.claims] == ["b", "b"]


async def test_what_the_bytes_left_behind_is_due_at_once_and_stays_in_line(
    engine: Engine,
) -> None:
    tenants = [f"tenant {number % 5}" for number in range(40)]
    ids = await submit(engine, *(new_job(tenant=one, args=b"x" * 1_000) for one in tenants))
    taken: list[str] = []
    while len(taken) < len(ids):
        answer = await engine.jobs.claim(request(limit=100, max_bytes=2_500))
        assert len(answer.claims) == min(3, len(ids) - len(taken))
        taken += [one.job.id for one in answer.claims]
        assert answer.poll_after_ms == (0 if len(taken) < len(ids) else None)

    # Tenants take turns as if it had been one claim: the order of submission, here.
    assert taken == ids


async def test_what_is_not_due_yet_is_not_left_behind_by_the_bytes(engine: Engine) -> None:
    await submit(engine, new_job(args=b"x" * 100), new_job(delay_ms=4_000))
    asked = request(limit=10, max_bytes=100)

    answer = await engine.jobs.claim(asked)

    assert len(answer.claims) == 1
    assert is_poll(engine, asked, answer, 4_000)


async def _hold(engine: Engine, what: str, *, held: bool) -> None:
    settings = engine.settings
    if what == "queue":
        await settings.put_queue("still", QueueSettings(held=held), **BY)
    elif what == "type":
        await settings.put_type("still", TypeSettings(held=held), **BY)
    else:
        await settings.put_tenant("still", TenantSettings(held=held), **BY)
