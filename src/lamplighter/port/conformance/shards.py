"""Jobs in all shards of a store: who gets them, and what is promised over all and by each.

An engine whose stores are not divided keeps all of this without further ado.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.ids import shard_of_key
from lamplighter.model.job import Level
from lamplighter.port.conformance.builders import (
    answers,
    claim,
    completed,
    handed_out,
    is_poll,
    key,
    new_id,
    new_job,
    part_of,
    recording,
    records,
    released,
    request,
    spread,
    submit,
)
from lamplighter.port.store import queue_topic
from lamplighter.port.values import (
    ChangeAnswer,
    QueueSettings,
    Renewal,
    SettleAnswer,
    SubmitAnswer,
    Submitted,
    TenantSettings,
    TypeSettings,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from lamplighter.model.job import Claim, NewJob
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

    Factory = Callable[[], Awaitable[Engine]]

BY = {"by": "test", "reason": "for the test"}
CREATED, ALREADY = SubmitAnswer.CREATED, SubmitAnswer.ALREADY
LONG = 20.0
"""Far more than a wake-up takes; a test that waits this long has failed."""
PATIENCE = 20
"""Claims per shard after which chance alone does not explain that a job was not found."""


def _jobs(count: int, *, tenant: str = "default", level: Level = Level.NORMAL) -> list[NewJob]:
    return spread(new_job(tenant=tenant, level=level) for _ in range(count))


def _by_part(engine: Engine, ids: Sequence[str]) -> dict[int, list[str]]:
    """Sort ids by their part of the store, in their order."""
    parts: dict[int, list[str]] = {}
    for job_id in ids:
        parts.setdefault(part_of(engine, job_id), []).append(job_id)
    return parts


async def _drained(engine: Engine, limit: int) -> list[Claim]:
    """Claim until nothing is left."""
    taken: list[Claim] = []
    while batch := await claim(engine, limit):
        assert len(batch) <= limit
        taken += batch
    return taken


async def test_a_store_says_how_many_shards_it_has(engine: Engine) -> None:
    ids = [job.id for job in _jobs(1_024)]

    assert engine.capabilities.shards >= 1
    assert set(_by_part(engine, ids)) == set(range(engine.capabilities.shards))


# ── submit ───────────────────────────────────────────────────────────────────────────────────


async def test_submissions_to_all_shards_are_answered_in_order(engine: Engine) -> None:
    first, again = _jobs(50), _jobs(50)
    await submit(engine, *first)

    mixed = [job for pair in zip(first, again, strict=True) for job in pair]
    said = await engine.jobs.submit(mixed)

    expected = [Submitted(job.id, CREATED if job in again else ALREADY) for job in mixed]
    assert said == expected


async def test_a_key_makes_one_job_whichever_shard_it_is_in(engine: Engine) -> None:
    keys = [key(f"key {number}") for number in range(30)]
    first = [new_job(key=one) for one in keys]
    await submit(engine, *first)

    again = await engine.jobs.submit([new_job(key=one) for one in keys])
    other = await engine.jobs.submit([new_job(key=key(one.key, body="another")) for one in keys])

    assert again == [Submitted(job.id, ALREADY) for job in first]
    assert other == [Submitted(job.id, SubmitAnswer.CONFLICT) for job in first]
    assert sorted(one.job.id for one in await _drained(engine, 7)) == sorted(j.id for j in first)


async def test_keys_that_many_submit_at_once_make_one_job_each(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]

    said = await asyncio.gather(
        *(
            engines[n % 2].jobs.submit([new_job(key=key(f"key {number}")) for number in range(10)])
            for n in range(12)
        )
    )

    for number in range(10):
        assert Counter(part[number].answer for part in said) == {CREATED: 1, ALREADY: 11}
        assert len({part[number].id for part in said}) == 1
    assert len(await _drained(engine, 100)) == 10


async def test_a_job_that_is_not_where_its_key_is_is_refused_and_nothing_is_stored(
    engine: Engine,
) -> None:
    place = shard_of_key("default", "", "key")
    astray = new_job(id=new_id(place + 1), key=key())
    others = _jobs(20)

    if engine.capabilities.shards == 1:
        assert (await engine.jobs.submit([*others, astray]))[-1].answer is CREATED
        return
    with pytest.raises(InvalidInput) as refused:
        await engine.jobs.submit([*others, astray])

    assert refused.value.value == astray.id
    assert str(place) in refused.value.hint
    assert set((await engine.inspector.counts()).values()) == {0}
    assert (await engine.jobs.submit([new_job(key=key())]))[0].answer is CREATED


# ── claim ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_jobs_of_all_shards_are_handed_out_once_each(engine: Engine, limit: int) -> None:
    ids = await submit(engine, *_jobs(60))

    taken = await _drained(engine, limit)

    assert sorted(one.job.id for one in taken) == sorted(ids)
    assert {one.fence.lease for one in taken} == {1}


async def test_many_claimers_get_the_jobs_of_all_shards_once_each(
    engine: Engine, engine_factory: Factory
) -> None:
    engines = [engine, await engine_factory()]
    ids = await submit(engine, *spread(new_job(tenant=f"t{n % 7}") for n in range(600)))

    parts = await asyncio.gather(*(_drained(engines[n % 2], 7) for n in range(12)))

    assert sorted(one.job.id for part in parts for one in part) == sorted(ids)


async def test_a_claim_is_filled_from_as_many_shards_as_it_takes(engine: Engine) -> None:
    await submit(engine, *_jobs(40))

    assert [len(await claim(engine, 25)) for _ in range(3)] == [25, 15, 0]


async def test_each_shard_has_its_own_order_and_hand_out_numbers(engine: Engine) -> None:
    ids = await submit(engine, *_jobs(48))
    taken = await _drained(engine, 5)

    for part, mine in _by_part(engine, ids).items():
        out = [one for one in taken if part_of(engine, one.job.id) == part]
        assert [one.job.id for one in out] == mine
        assert [one.handout for one in out] == list(range(1, len(mine) + 1))
    (queue,) = await engine.inspector.queues()
    assert queue.handouts == 48


async def test_in_each_shard_a_higher_level_goes_first(engine: Engine) -> None:
    ids: list[str] = []
    for level in sorted(Level, reverse=True):
        ids += await submit(engine, *_jobs(16, level=level))
    found = {one.job.id: one.job.level for one in await _drained(engine, 3)}

    for mine in _by_part(engine, list(found)).values():
        assert [found[job_id] for job_id in mine] == sorted(found[job_id] for job_id in mine)
    assert sorted(found) == sorted(ids)


async def test_bytes_count_over_all_shards_of_a_claim(engine: Engine) -> None:
    await submit(engine, *spread(new_job(args=b"x" * 100) for _ in range(16)))

    answer = await engine.jobs.claim(request(limit=16, max_bytes=450))
    assert (len(answer.claims), answer.poll_after_ms) == (5, 0)
    answer = await engine.jobs.claim(request(limit=16, max_bytes=0))
    assert (len(answer.claims), answer.poll_after_ms) == (1, 0)


async def test_the_rest_of_a_claim_goes_to_the_queues_that_have_something(engine: Engine) -> None:
    await submit(engine, *spread(new_job(queue="a" if n % 3 else "b") for n in range(24)))

    asked = request("a", "b", limit=24)
    answer = await engine.jobs.claim(asked)

    assert Counter(one.job.queue for one in answer.claims) == {"a": 16, "b": 8}
    assert is_poll(engine, asked, answer, None)


async def test_a_repeated_claim_gives_the_same_whatever_came_into_any_shard_meanwhile(
    engine: Engine, engine_factory: Factory
) -> None:
    other = await engine_factory()
    for round_ in range(12):
        jobs = _jobs(8)
        await submit(engine, *jobs[round_ % 8 : round_ % 8 + 1])
        asked = request(limit=3)
        first = (await engine.jobs.claim(asked)).claims
        await submit(engine, *_jobs(8))

        for again in (await engine.jobs.claim(asked), await other.jobs.claim(asked)):
            assert (again.claims, again.poll_after_ms) == (first, 0)
        await _drained(engine, 100)


async def test_a_repeated_claim_gives_what_still_runs_of_all_shards(engine: Engine) -> None:
    await submit(engine, *spread(new_job(queue=f"q{n % 2}") for n in range(20)))
    asked = request("q1", "q0", limit=15)
    first = (await engine.jobs.claim(asked)).claims
    assert _sorted((await engine.jobs.claim(asked)).claims) == _sorted(first)

    await engine.jobs.settle([completed(one) for one in first[::2]])

    assert _sorted((await engine.jobs.claim(asked)).claims) == _sorted(first[1::2])


def _sorted(claims: Sequence[Claim]) -> list[Claim]:
    return sorted(claims, key=lambda one: one.job.id)


async def test_a_repeat_of_a_claim_that_got_nothing_from_any_shard_is_a_new_claim(
    engine: Engine,
) -> None:
    asked = request(limit=5)
    assert (await engine.jobs.claim(asked)).claims == []
    ids = await submit(engine, *_jobs(8))

    taken = (await engine.jobs.claim(asked)).claims

    assert len(taken) == 5
    assert {one.job.id for one in taken} <= set(ids)


async def test_the_soonest_of_all_shards_says_when_to_ask_again(engine: Engine) -> None:
    delays = [9_000, 4_000, 6_000, 8_000, 5_000, 7_000]
    await submit(engine, *spread(new_job(delay_ms=delay) for delay in delays))

    answer = await engine.jobs.claim(request())

    assert (answer.claims, answer.poll_after_ms) == ([], 4_000)


async def test_asking_as_often_as_told_drains_all_shards(
    engine: Engine, clock: VirtualClock
) -> None:
    ids = await submit(
        engine, *spread(new_job(tenant=f"tenant {n:03}", delay_ms=1_000) for n in range(300))
    )
    clock.advance(seconds=1)
    taken: list[str] = []
    while True:
        answer = await engine.jobs.claim(request(limit=90))
        taken += [one.job.id for one in answer.claims]
        if answer.poll_after_ms is None:
            break
        assert answer.poll_after_ms == 0

    assert sorted(taken) == sorted(ids)


@pytest.mark.parametrize(
    ("tenant", "level"),
    [("flood", Level.CRITICAL), ("small", Level.NORMAL)],
    ids=["urgent", "small tenant"],
)
async def test_a_job_in_any_shard_is_found_beside_a_flood_in_all_of_them(
    engine: Engine, tenant: str, level: Level
) -> None:
    shards = engine.capabilities.shards
    await submit(engine, *_jobs(500 + 10 * PATIENCE * shards, tenant="flood"))
    for shard in range(shards):
        wanted = new_job(id=new_id(shard), tenant=tenant, level=level)
        await submit(engine, wanted)
        for _ in range(PATIENCE * shards):
            taken = await claim(engine, 5)
            assert len(taken) == 5
            await engine.jobs.settle([released(one) for one in taken if one.job.id != wanted.id])
            if wanted.id in [one.job.id for one in taken]:
                break
        else:
            pytest.fail(f"the job in shard {shard} was not found")


async def test_who_waited_longest_in_any_shard_is_served_at_the_latest_by_the_tenth(
    engine: Engine, clock: VirtualClock
) -> None:
    waiting = await submit(engine, *_jobs(engine.capabilities.shards, level=Level.LOW))
    clock.advance(seconds=61)
    await submit(engine, *_jobs(20 * len(waiting), level=Level.CRITICAL))

    taken = await _drained(engine, 5)

    assert {one.handout for one in taken if one.job.id in waiting} == {10}


# ── what is named by its id ──────────────────────────────────────────────────────────────────


async def test_claims_of_all_shards_are_renewed_recorded_and_settled_in_order(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, *_jobs(30))
    taken = (await _drained(engine, 11))[::-1]
    clock.advance(seconds=5)

    renewed = await engine.jobs.renew([Renewal(one.job.id, one.fence) for one in taken], 60_000)
    recorded = await engine.jobs.record([recording(one, one.job.id) for one in taken])
    settled = await engine.jobs.settle([completed(one) for one in taken])
    again = await engine.jobs.settle([completed(one) for one in taken])

    ids = [one.job.id for one in taken]
    assert [(one.id, one.held) for one in renewed] == [(job_id, True) for job_id in ids]
    assert [(one.id, one.held) for one in recorded] == [(job_id, True) for job_id in ids]
    done, already = SettleAnswer.DONE, SettleAnswer.ALREADY
    assert [(one.id, one.answer) for one in settled] == [(job_id, done) for job_id in ids]
    assert [(one.id, one.answer) for one in again] == [(job_id, already) for job_id in ids]
    for job_id in ids:
        (piece,) = await engine.inspector.logs(job_id)
        assert piece.piece.data == job_id.encode()
        (attempt,) = await engine.inspector.attempts(job_id)
        assert attempt.job_id == job_id


async def test_operators_reach_jobs_in_all_shards_and_are_answered_in_order(engine: Engine) -> None:
    ids = await submit(engine, *_jobs(20))
    mixed = [one for number, job_id in enumerate(ids) for one in (job_id, new_id(number))]
    done, unknown, conflict = ChangeAnswer.DONE, ChangeAnswer.UNKNOWN, ChangeAnswer.CONFLICT

    for verb in ("hold", "unhold"):
        said = await getattr(engine.jobs, verb)(mixed, **BY)
        assert [one.id for one in said] == mixed
        assert answers(said) == [done, unknown] * 20
        held = {one.hold is not None for one in await records(engine, ids)}
        assert held == {verb == "hold"}
    assert answers(await engine.jobs.purge(ids, **BY)) == [conflict] * 20
    assert answers(await engine.jobs.cancel(mixed, **BY)) == [done, unknown] * 20
    assert await claim(engine, 100) == []
    assert answers(await engine.jobs.replay(mixed, **BY)) == [done, unknown] * 20
    assert sorted(await handed_out(engine, 100)) == sorted(ids)


async def test_jobs_in_all_shards_are_made_due_and_purged(engine: Engine) -> None:
    ids = await submit(engine, *spread(new_job(delay_ms=60_000) for _ in range(20)))
    assert set(answers(await engine.jobs.retry(ids, **BY))) == {ChangeAnswer.DONE}
    await engine.jobs.settle([completed(one) for one in await claim(engine, 100)])

    assert set(answers(await engine.jobs.purge(ids, **BY))) == {ChangeAnswer.DONE}
    assert [await engine.inspector.job(job_id) for job_id in ids] == [None] * 20


# ── what is set ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["queue", "type", "tenant"])
async def test_a_hold_acts_on_all_shards(engine: Engine, what: str) -> None:
    still = spread(new_job("still", queue="still", tenant="still") for _ in range(12))
    await submit(engine, *still[:6])
    await _hold(engine, what, held=True)
    await submit(engine, *still[6:])

    answer = await engine.jobs.claim(request("still", types=("still",), limit=100))
    assert (answer.claims, answer.poll_after_ms) == ([], None)

    await _hold(engine, what, held=False)
    taken = await claim(engine, 100, "still", types=("still",))
    assert sorted(one.job.id for one in taken) == sorted(job.id for job in still)


async def test_a_weight_acts_on_all_shards(engine: Engine) -> None:
    await engine.settings.put_tenant("heavy", TenantSettings(weight=3), **BY)
    shards = engine.capabilities.shards
    for tenant in ("heavy", "light"):
        await submit(engine, *_jobs(60 * shards, tenant=tenant))
    tenants: dict[int, list[str]] = {}
    for one in await _drained(engine, 10):
        tenants.setdefault(part_of(engine, one.job.id), []).append(one.job.tenant)

    assert set(tenants) == set(range(shards))
    for mine in tenants.values():
        assert abs(mine[:40].count("heavy") - 30) <= 1


async def test_max_wait_acts_on_all_shards(engine: Engine, clock: VirtualClock) -> None:
    await engine.settings.put_queue("default", QueueSettings(max_wait_ms=1_000), **BY)
    waiting = await submit(engine, *_jobs(engine.capabilities.shards, level=Level.LOW))
    clock.advance(seconds=2)
    await submit(engine, *_jobs(20 * len(waiting), level=Level.CRITICAL))

    taken = await _drained(engine, 7)

    assert {one.handout for one in taken if one.job.id in waiting} == {10}


async def _hold(engine: Engine, what: str, *, held: bool) -> None:
    settings = engine.settings
    if what == "queue":
        await settings.put_queue("still", QueueSettings(held=held), **BY)
    elif what == "type":
        await settings.put_type("still", TypeSettings(held=held), **BY)
    else:
        await settings.put_tenant("still", TenantSettings(held=held), **BY)


# ── wake-ups ─────────────────────────────────────────────────────────────────────────────────


async def test_news_of_a_job_in_any_shard_reach_who_waits(
    engine: Engine, engine_factory: Factory
) -> None:
    idle, topic = await engine_factory(), queue_topic("default")
    await idle.wakeup.wait([topic], 0.01)
    for shard in range(engine.capabilities.shards):
        assert await claim(idle) == []
        waiting = asyncio.create_task(idle.wakeup.wait([topic], LONG))
        (job_id,) = await submit(engine, new_job(id=new_id(shard)))

        await engine.wakeup.notify(topic)

        if engine.capabilities.push_wakeup:
            assert await waiting
        waiting.cancel()
        assert await handed_out(idle, 1) == [job_id]
