"""What is read, rescued and pruned over all shards of a store is whole, in order and in bounds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.filters import Filter
from lamplighter.model.job import JobState, Level
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    BOOM,
    abandoned,
    claim,
    completed,
    failed,
    key,
    new_job,
    part_of,
    record,
    spread,
    submit,
)
from lamplighter.port.values import (
    NewWorker,
    QueueSettings,
    Retention,
    SettleAnswer,
    SubmitAnswer,
    TenantSettings,
    TypeInfo,
    TypeSettings,
    Why,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamplighter.model.job import Claim, JobRecord
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "test", "reason": "for the test"}
ONCE = Retry(max_attempts=1)


async def _submitted(engine: Engine, clock: VirtualClock, count: int) -> list[str]:
    """Submit jobs one after the other, each at its own time and in another shard."""
    ids: list[str] = []
    for job in spread(new_job(tenant=f"t{n % 3}") for n in range(count)):
        clock.advance(ms=1)
        ids += await submit(engine, job)
    return ids


async def _died(engine: Engine, clock: VirtualClock, taken: Sequence[Claim]) -> None:
    """Let claims die one after the other, each third of a cause of its own."""
    for number, one in enumerate(taken):
        clock.advance(ms=1)
        error = replace(BOOM, fingerprint=f"cause {number % 3}")
        await engine.jobs.settle([failed(one, error, retry=ONCE)])


async def _listed(engine: Engine, which: Filter, limit: int) -> list[JobRecord]:
    found: list[JobRecord] = []
    cursor: str | None = None
    while True:
        page = await engine.inspector.jobs(which, limit=limit, cursor=cursor)
        assert len(page.jobs) <= limit
        found += page.jobs
        if (cursor := page.cursor) is None:
            return found


def _ids(found: Sequence[JobRecord]) -> list[str]:
    return [one.job.id for one in found]


# ── listings ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_jobs_of_all_shards_are_listed_newest_first(
    engine: Engine, clock: VirtualClock, limit: int
) -> None:
    ids = await _submitted(engine, clock, 40)

    assert _ids(await _listed(engine, Filter(), limit)) == ids[::-1]
    some = _ids(await _listed(engine, Filter(tenants=("t1",)), limit))
    assert some == ids[1::3][::-1]


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_jobs_that_came_to_all_shards_at_once_are_listed_once_each(
    engine: Engine, limit: int
) -> None:
    ids = await submit(engine, *spread(new_job() for _ in range(40)))

    assert sorted(_ids(await _listed(engine, Filter(), limit))) == sorted(ids)


async def test_a_listing_of_all_shards_goes_on_behind_what_it_gave(
    engine: Engine, clock: VirtualClock
) -> None:
    ids = await _submitted(engine, clock, 30)
    page = await engine.inspector.jobs(Filter(), limit=9)
    newer = await _submitted(engine, clock, 5)
    await engine.jobs.cancel(ids[:4], **BY)
    await engine.jobs.purge(ids[:4], **BY)

    rest: list[str] = []
    cursor = page.cursor
    while cursor is not None:
        following = await engine.inspector.jobs(Filter(), limit=4, cursor=cursor)
        rest, cursor = rest + _ids(following.jobs), following.cursor

    assert _ids(page.jobs) + rest == ids[4:][::-1]
    assert not set(newer) & set(rest)


@pytest.mark.parametrize("limit", [1, 4, 100])
async def test_dead_letters_of_all_shards_are_listed_by_their_death(
    engine: Engine, clock: VirtualClock, limit: int
) -> None:
    await submit(engine, *spread(new_job() for _ in range(20)))
    taken = sorted(await claim(engine, 100), key=lambda one: one.job.id)
    await _died(engine, clock, taken)
    order = [one.job.id for one in taken][::-1]

    assert _ids(await _listed(engine, Filter(statuses=("dead",)), limit)) == order
    some = Filter(statuses=("dead",), fingerprints=("cause 1",))
    assert _ids(await _listed(engine, some, limit)) == order[::-1][1::3][::-1]


async def test_dead_letters_of_all_shards_with_one_cause_are_one_group(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, *spread(new_job() for _ in range(20)))
    taken = await claim(engine, 100)
    await _died(engine, clock, taken)

    groups = (await engine.inspector.dead_groups(Filter())).groups

    assert [(one.fingerprint, one.count) for one in groups] == [
        ("cause 0", 7),
        ("cause 1", 7),
        ("cause 2", 6),
    ]
    assert [one.example for one in groups] == [taken[n].job.id for n in (18, 19, 17)]
    newest = [(await record(engine, one.example)).finished_at_ms for one in groups]
    assert [one.newest_at_ms for one in groups] == newest


# ── counts ───────────────────────────────────────────────────────────────────────────────────


async def test_jobs_of_all_shards_are_counted(engine: Engine) -> None:
    ids = await submit(engine, *spread(new_job() for _ in range(40)))
    await engine.jobs.settle([completed(one) for one in await claim(engine, 9)])
    running = await claim(engine, 12)
    left = [i for i in ids if (await record(engine, i)).state is JobState.WAITING]
    await engine.jobs.cancel(left[:4], **BY)

    counts = {state: count for state, count in (await engine.inspector.counts()).items() if count}

    assert len(running) == 12
    assert counts == {"waiting": 15, "running": 12, "succeeded": 9, "cancelled": 4}


async def test_queues_and_tenants_are_those_of_all_shards(
    engine: Engine, clock: VirtualClock
) -> None:
    jobs = spread(
        new_job(
            queue=f"q{n % 2}",
            tenant=f"t{n % 3}",
            delay_ms=60_000 if n % 4 == 0 else 0,
            level=Level.HIGH if n % 5 == 0 else Level.NORMAL,
        )
        for n in range(60)
    )
    await submit(engine, *jobs)
    await engine.settings.put_queue("q1", QueueSettings(max_wait_ms=5_000), **BY)
    await engine.settings.put_tenant("t9", TenantSettings(weight=7), **BY)
    clock.advance(seconds=3)
    taken = await claim(engine, 10, "q1")
    running = Counter(one.job.tenant for one in taken)

    queues = {one.name: one for one in await engine.inspector.queues()}
    tenants = await engine.inspector.tenants()

    assert list(queues) == ["q0", "q1"]
    q0, q1 = queues["q0"], queues["q1"]
    assert (q0.ready, q0.scheduled, q0.running, q0.handouts) == (15, 15, 0, 0)
    assert (q1.ready, q1.scheduled, q1.running, q1.handouts) == (20, 0, 10, 10)
    assert (q0.oldest_due_ms, q1.max_wait_ms) == (3_000, 5_000)
    assert q0.by_level[Level.HIGH] == 6
    assert [one.name for one in tenants] == ["t0", "t1", "t2", "t9"]
    assert [one.weight for one in tenants] == [1, 1, 1, 7]
    for one in tenants[:3]:
        assert (one.waiting, one.running) == (20 - running[one.name], running[one.name])
    assert [await engine.inspector.queue(name) for name in queues] == list(queues.values())
    assert [await engine.inspector.tenant(one.name) for one in tenants] == tenants


async def test_a_type_and_its_hold_are_told_once(engine: Engine) -> None:
    known = TypeInfo(name="work", schema="{}", hash="abc", queue="default")
    await engine.membership.join(_worker(known))
    await submit(engine, *spread(new_job() for _ in range(8)))

    await engine.settings.put_type("work", TypeSettings(held=True), **BY)

    (row,) = await engine.inspector.types()
    assert (row.name, row.live_workers) == ("work", 1)
    assert row.held is not None


async def test_a_job_in_any_shard_is_explained_by_what_goes_before_it_there(
    engine: Engine,
) -> None:
    known = TypeInfo(name="work", schema="{}", hash="abc", queue="default")
    await engine.membership.join(_worker(known))
    ids = await submit(engine, *spread(new_job() for _ in range(24)))
    before: Counter[int] = Counter()

    for job_id in ids:
        told = await engine.inspector.explain(job_id)
        assert told is not None
        ahead = before[part_of(engine, job_id)]
        before[part_of(engine, job_id)] += 1
        (reason,) = told.reasons
        expected = (Why.BEHIND, ahead) if ahead else (Why.NEXT, None)
        assert (told.record.job.id, reason.why, reason.count) == (job_id, *expected)


async def test_a_hold_is_the_reason_in_every_shard(engine: Engine) -> None:
    ids = await submit(engine, *spread(new_job() for _ in range(8)))
    await engine.settings.put_tenant("default", TenantSettings(held=True), **BY)

    for job_id in ids:
        told = await engine.inspector.explain(job_id)
        assert told is not None
        assert told.reasons[0].why is Why.HELD_TENANT


async def test_what_runs_in_all_shards_is_found_by_its_worker(engine: Engine) -> None:
    await submit(engine, *spread(new_job() for _ in range(30)))
    mine, others = await claim(engine, 20, worker="ada"), await claim(engine, 10, worker="bob")

    def named(claims: Sequence[Claim]) -> list[tuple[str, str]]:
        return sorted((one.job.id, one.fence.nonce) for one in claims)

    assert named(await engine.jobs.claims_of("ada")) == named(mine)
    assert named(await engine.jobs.claims_of("bob")) == named(others)


def _worker(known: TypeInfo) -> NewWorker:
    return NewWorker(id="w", host="here", pid=1, queues=("default",), slots=5, types=(known,))


# ── rescue and prune ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", [1, 10, 100])
async def test_the_longest_overdue_of_all_shards_are_rescued_first(
    engine: Engine, clock: VirtualClock, limit: int
) -> None:
    await submit(engine, *spread(new_job() for _ in range(24)))
    taken: list[Claim] = []
    for lease in range(24):
        taken += await claim(engine, 1, lease_ms=1_000 + 10 * (lease * 7 % 24))
    clock.advance(seconds=30)

    found = await engine.jobs.rescue(limit)

    order = sorted(range(24), key=lambda lease: lease * 7 % 24)
    assert [one.claim for one in found] == [taken[lease] for lease in order][:limit]
    settled = await engine.jobs.settle([abandoned(one.claim) for one in found])
    assert {one.answer for one in settled} == {SettleAnswer.DONE}


async def test_the_oldest_of_all_shards_are_pruned_and_never_more_than_the_limit(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, *spread(new_job() for _ in range(40)))
    taken = sorted(await claim(engine, 100), key=lambda one: one.job.id[12:])
    for one in taken:
        clock.advance(ms=1)
        await engine.jobs.settle([completed(one)])
    clock.advance(seconds=3_600)
    retention, removed = Retention(finished_count=13), 0

    while True:
        pruned = await engine.jobs.prune(retention, 6)
        assert pruned.jobs <= 6
        removed += pruned.jobs
        left = {one.job.id for one in await _listed(engine, Filter(), 100)}
        if pruned.jobs == 0 and not pruned.more:
            break

    assert removed == 27
    assert left == {one.job.id for one in taken[27:]}


@pytest.mark.parametrize("dead", [False, True], ids=["finished", "dead"])
async def test_what_is_too_old_goes_from_all_shards(
    engine: Engine, clock: VirtualClock, *, dead: bool
) -> None:
    await submit(engine, *spread(new_job() for _ in range(20)))
    ends = [failed(one, retry=ONCE) if dead else completed(one) for one in await claim(engine, 100)]
    await engine.jobs.settle(ends)
    clock.advance(seconds=3_600)
    retention, removed = Retention(finished_ms=0, dead_ms=0), 0

    while (pruned := await engine.jobs.prune(retention, 7)).jobs or pruned.more:
        assert pruned.jobs <= 7
        removed += pruned.jobs

    assert removed == 20
    assert await _listed(engine, Filter(), 100) == []


async def test_keys_go_from_all_shards_after_their_jobs(
    engine: Engine, clock: VirtualClock
) -> None:
    jobs = [new_job(key=key(f"key {n}")) for n in range(20)]
    await submit(engine, *jobs)
    await engine.jobs.settle([completed(one) for one in await claim(engine, 100)])
    clock.advance(seconds=8 * 86_400)
    keys = 0

    while (pruned := await engine.jobs.prune(Retention(), 100)).jobs or pruned.keys or pruned.more:
        keys += pruned.keys

    assert keys == 20
    again = await engine.jobs.submit([new_job(key=key(f"key {n}")) for n in range(20)])
    assert {one.answer for one in again} == {SubmitAnswer.CREATED}
