"""Reads that come in pages, and those that put several shards together."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from lamplighter.engines.redis.verbs import listing
from lamplighter.model.filters import Filter
from lamplighter.model.job import Extras, JobState, Level
from lamplighter.model.journal import Journal, Piece
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import BOOM, claim, completed, failed, submit
from lamplighter.port.values import (
    NewWorker,
    QueueSettings,
    Recording,
    TenantSettings,
    TypeInfo,
    Why,
)
from tests.unit.redis.stores import Store, opened

BY = {"by": "test", "reason": "for the test"}
ONCE = Retry(max_attempts=1)


@pytest.fixture(params=[1, 3])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of one shard, and one of several."""
    async with opened(tmp_path, request.param) as store:
        yield store


async def submitted(store: Store, count: int, **options: object) -> list[str]:
    """Submit jobs one after the other, each at its own time."""
    ids: list[str] = []
    for _ in range(count):
        store.clock.advance(ms=1)
        ids += await submit(store.engine, store.new_job(**options))
    return ids


async def died(store: Store, count: int, fingerprint: str = "boom", *, apart_ms: int = 1):
    """Let jobs die, each at its own time or all at once."""
    await submit(store.engine, *(store.new_job() for _ in range(count)))
    taken = await claim(store.engine, count)
    for one in taken:
        store.clock.advance(ms=apart_ms)
        error = replace(BOOM, fingerprint=fingerprint)
        await store.engine.jobs.settle([failed(one, error, retry=ONCE)])
    return [one.job.id for one in taken]


async def listed(store: Store, which: Filter, limit: int) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.engine.inspector.jobs(which, limit=limit, cursor=cursor)
        assert len(page.jobs) <= limit
        found += [record.job.id for record in page.jobs]
        if (cursor := page.cursor) is None:
            return found


@pytest.mark.parametrize("limit", [1, 7, 500])
async def test_jobs_of_all_shards_are_listed_newest_first(store: Store, limit: int):
    ids = await submitted(store, 40)

    assert await listed(store, Filter(), limit) == ids[::-1]


async def test_a_listing_goes_on_behind_what_it_gave_although_jobs_come_and_go(store: Store):
    ids = await submitted(store, 20)
    page = await store.engine.inspector.jobs(Filter(), limit=5)
    await submitted(store, 5)
    await store.engine.jobs.cancel(ids[:2] + ids[-2:], **BY)
    await store.engine.jobs.purge(ids[:2] + ids[-2:], **BY)

    rest = await store.engine.inspector.jobs(Filter(), limit=100, cursor=page.cursor)

    assert [record.job.id for record in page.jobs] == ids[:-6:-1]
    assert [record.job.id for record in rest.jobs] == ids[2:-5][::-1]
    assert rest.cursor is None


async def test_a_listing_crosses_pages_of_the_index(store: Store):
    jobs = [store.new_job() for _ in range(1_300)]
    ids = await submit(store.engine, *jobs)

    found = await listed(store, Filter(), 400)

    assert sorted(found) == sorted(ids)
    if store.shards == 1:
        assert found == ids[::-1]


async def test_a_rare_job_is_found_behind_many_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listing, "SCAN_LIMIT", 1_000)
    rare = store.new_job(tenant="rare")
    await submit(store.engine, rare, *(store.new_job() for _ in range(2_500)))

    first = await store.engine.inspector.jobs(Filter(tenants=("rare",)), limit=10)

    assert (first.jobs, first.cursor is None) == ([], False)
    assert await listed(store, Filter(tenants=("rare",)), 10) == [rare.id]


@pytest.mark.parametrize("apart_ms", [0, 1])
@pytest.mark.parametrize("limit", [1, 4, 100])
async def test_dead_letters_of_all_shards_are_listed_by_their_death(
    store: Store, limit: int, apart_ms: int
):
    ids = await died(store, 17, apart_ms=apart_ms)

    found = await listed(store, Filter(statuses=("dead",)), limit)

    assert sorted(found) == sorted(ids)
    assert found == (ids[::-1] if apart_ms else sorted(ids, reverse=True))


async def test_a_listing_of_dead_letters_goes_on_where_its_last_one_was_removed(store: Store):
    ids = await died(store, 12, apart_ms=0)
    order = sorted(ids, reverse=True)
    which = Filter(statuses=("dead",))
    page = await store.engine.inspector.jobs(which, limit=5)
    await store.engine.jobs.purge(order[:5], **BY)

    rest = await store.engine.inspector.jobs(which, limit=100, cursor=page.cursor)

    assert [record.job.id for record in page.jobs] == order[:5]
    assert [record.job.id for record in rest.jobs] == order[5:]


async def test_rare_dead_letters_are_found_behind_many_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(listing, "SCAN_LIMIT", 300)
    rare: list[str] = []
    for _ in range(4):
        rare += await died(store, 1, "rare")
        await died(store, 400, apart_ms=0)
        store.clock.advance(ms=1)
    which = Filter(statuses=("dead",), fingerprints=("rare",))

    assert await listed(store, which, 10) == rare[::-1]
    assert await listed(store, which, 1) == rare[::-1]


async def test_a_cursor_of_dead_letters_stays_short_however_many_shards_there_are(tmp_path: Path):
    async with opened(tmp_path, 64) as store:
        ids = await died(store, 130)

        page = await store.engine.inspector.jobs(Filter(statuses=("dead",)), limit=65)

        assert page.cursor is not None
        assert len(page.cursor) < 120
        assert await listed(store, Filter(statuses=("dead",)), 65) == ids[::-1]
        assert sorted(await listed(store, Filter(), 50)) == sorted(ids)


async def test_dead_letters_of_all_shards_are_grouped_together(store: Store):
    await died(store, 7, "often")
    (last, *_) = (await died(store, 7, "often"))[::-1]
    now = store.clock.now_ms()
    await died(store, 2, "rare")

    often, rare = (await store.engine.inspector.dead_groups(Filter())).groups

    assert (often.fingerprint, often.count, often.example) == ("often", 14, last)
    assert (often.newest_at_ms, often.type, often.queue) == (now, "work", "default")
    assert often.error is not None
    assert (rare.fingerprint, rare.count) == ("rare", 2)


@pytest.mark.parametrize("fingerprint", ['a "quoted" one', "back\\slash\\", "naïve ☂ 🎉", "", '"'])
async def test_any_fingerprint_is_found_and_grouped(store: Store, fingerprint: str):
    await died(store, 2, fingerprint)
    error = replace(BOOM, message=', "fingerprint": "other"', fingerprint="z")
    await submit(store.engine, store.new_job())
    (taken,) = await claim(store.engine, 1)
    await store.engine.jobs.settle([failed(taken, error, retry=ONCE)])

    groups = (await store.engine.inspector.dead_groups(Filter())).groups
    found = await listed(store, Filter(fingerprints=(fingerprint,)), 10)

    assert [(group.fingerprint, group.count) for group in groups] == [(fingerprint, 2), ("z", 1)]
    assert len(found) == 2


@pytest.mark.parametrize("tag", ["plain", "naïve ☂", 'with "quotes"', "back\\slash"])
async def test_any_tag_is_found_and_only_as_a_tag(store: Store, tag: str):
    wanted = store.new_job(extras=Extras(tags=("other", tag)))
    no_tag = store.new_job(extras=Extras(metadata={"tags": [tag], tag: tag}))
    await submit(store.engine, wanted, no_tag, store.new_job())

    assert await listed(store, Filter(tag=tag), 10) == [wanted.id]


@pytest.mark.parametrize("name", ["\ud800", "a\0b"])
async def test_a_name_that_nothing_can_have_finds_nothing(store: Store, name: str):
    await submitted(store, 2)

    assert await listed(store, Filter(tenants=(name,)), 10) == []
    assert await listed(store, Filter(types=(name,)), 10) == []
    assert len(await listed(store, Filter(types=(name, "work")), 10)) == 2


async def test_jobs_with_large_arguments_are_listed_in_one_page(store: Store):
    args = b'{"x":"%b"}' % (b"x" * 60_000)
    ids = await submitted(store, 100, args=args)

    page = await store.engine.inspector.jobs(Filter(), limit=200)

    assert [record.job.id for record in page.jobs] == ids[::-1]
    assert {record.job.args for record in page.jobs} == {args}


async def test_counts_are_those_of_all_shards(store: Store):
    ids = await submitted(store, 20)
    taken = await claim(store.engine, 8)
    await store.engine.jobs.settle([completed(one) for one in taken[:5]])
    left = [one for one in ids if one not in {claim_.job.id for claim_ in taken}]
    await store.engine.jobs.cancel(left[:2], **BY)
    await store.engine.jobs.hold(left[2:4], **BY)
    await store.engine.jobs.purge([taken[0].job.id], **BY)

    counts = await store.engine.inspector.counts()

    expected = {"waiting": 10, "running": 3, "succeeded": 4, "cancelled": 2}
    assert {state: count for state, count in counts.items() if count} == expected


async def test_queues_and_tenants_are_put_together(store: Store):
    tenants = [f"t{n:04}" for n in range(1_200)]
    jobs = [
        store.new_job(tenant=one, delay_ms=0 if n % 2 else 60_000) for n, one in enumerate(tenants)
    ]
    await submit(store.engine, *jobs)
    await submitted(store, 3, queue="b", level=Level.HIGH)
    await store.engine.settings.put_tenant(tenants[1], TenantSettings(held=True, weight=4), **BY)
    await store.engine.settings.put_queue("c", QueueSettings(max_wait_ms=7), **BY)
    await claim(store.engine, 5, "b")
    store.clock.advance(ms=500)

    b, c, default = await store.engine.inspector.queues()
    found = await store.engine.inspector.tenants()

    assert (default.ready, default.scheduled, default.running) == (600, 600, 0)
    assert (default.by_level[Level.NORMAL], default.oldest_due_ms) == (1_200, 503)
    assert (b.ready, b.running, b.handouts, b.oldest_due_ms) == (0, 3, 3, None)
    assert (c.name, c.max_wait_ms, c.by_level[Level.LOW]) == ("c", 7, 0)
    assert [one.name for one in found] == sorted(["default", *tenants])[:1_000]
    assert (found[0].name, found[0].waiting, found[0].running) == ("default", 0, 3)
    assert (found[2].weight, found[2].held is not None, found[2].waiting) == (4, True, 1)


async def test_all_of_many_workers_and_types_are_listed(store: Store):
    for number in range(1_100):
        type_ = TypeInfo(name=f"type {number % 250}", schema="{}", hash="h", queue="q")
        worker = NewWorker(id=f"w{number}", host="h", pid=1, queues=("q",), slots=1, types=(type_,))
        await store.engine.membership.join(worker)
        store.clock.advance(ms=number % 2)

    workers = await store.engine.inspector.workers()
    types = await store.engine.inspector.types()

    assert [one.joined_at_ms for one in workers] == sorted(one.joined_at_ms for one in workers)
    assert {one.id for one in workers} == {f"w{number}" for number in range(1_100)}
    assert len(types) == 250
    assert sum(row.live_workers for row in types) == 1_100


async def test_many_attempts_and_pieces_of_a_log_are_read_in_order(store: Store):
    (job_id,) = await submitted(store, 1)
    again = Retry(max_attempts=10_000, base=0.001, factor=1, jitter=0)
    for _ in range(1_050):
        store.clock.advance(ms=10)
        (taken,) = await claim(store.engine, 1)
        said = Journal(pieces=(Piece(0, b"a"), Piece(1, b"b")))
        await store.engine.jobs.record([Recording(job_id, taken.fence, said)])
        await store.engine.jobs.settle([failed(taken, retry=again)])
    store.clock.advance(ms=10)
    await claim(store.engine, 1)

    attempts = await store.engine.inspector.attempts(job_id, limit=2_000)
    logs = await store.engine.inspector.logs(job_id, limit=5_000)

    assert [one.lease for one in attempts] == list(range(1, 1_052))
    assert attempts[-1].outcome == "running"
    places = [(one.lease, one.piece.number) for one in logs]
    assert places == [(lease, number) for lease in range(1, 1_051) for number in (0, 1)]


async def test_explain_looks_at_the_shard_of_the_job(store: Store):
    ids = await submitted(store, 7, tenant="blue")
    await store.engine.settings.put_tenant("blue", TenantSettings(held=True), **BY)

    for job_id in ids:
        explanation = await store.engine.inspector.explain(job_id)
        assert explanation is not None
        assert explanation.record.job.id == job_id
        assert explanation.reasons[0].why is Why.HELD_TENANT


async def test_the_wishes_of_operators_go_to_the_shards_of_their_jobs(store: Store):
    ids = await submitted(store, 9)

    held = await store.engine.jobs.hold(ids[::-1], **BY)
    freed = await store.engine.jobs.unhold(ids[:4], **BY)
    stopped = await store.engine.jobs.cancel([ids[8], ids[0], ids[8]], **BY)

    assert [one.id for one in held] == ids[::-1]
    assert {one.answer for one in held} == {"done"}
    assert [one.id for one in freed] == ids[:4]
    assert [(one.id, one.answer) for one in stopped] == [
        (ids[8], "done"),
        (ids[0], "done"),
        (ids[8], "already"),
    ]
    taken = await claim(store.engine, 10)
    assert sorted(one.job.id for one in taken) == sorted(ids[1:4])
    assert (await store.engine.inspector.job(ids[8])).state is JobState.CANCELLED
    assert await store.faults() == ()
