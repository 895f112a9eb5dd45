"""Submit, claim and settle where the port does not look: shards, bounds, what is left behind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamplighter import runtime
from lamplighter.model.journal import Journal, Piece
from lamplighter.port.conformance.builders import (
    claim,
    completed,
    new_job,
    released,
    request,
    running,
    submit,
)
from lamplighter.port.values import Recording
from tests.unit.redis.stores import Store, opened

HOUR = 3_600


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 1) as store:
        yield store


@pytest.fixture
async def sharded(tmp_path: Path) -> AsyncIterator[Store]:
    async with opened(tmp_path, 4) as store:
        yield store


def commands(store: Store) -> int:
    """How many commands the server has run, those inside scripts too."""
    return sum(one["calls"] for one in store.client.info("commandstats").values())


# ── shards ───────────────────────────────────────────────────────────────────────────────────


async def test_a_claim_takes_from_all_shards_and_no_more_than_its_limit(sharded: Store):
    ids = await submit(sharded.engine, *(sharded.new_job() for _ in range(40)))

    first = await claim(sharded.engine, 25)
    rest = await claim(sharded.engine, 25)

    assert (len(first), len(rest)) == (25, 15)
    assert sorted(one.job.id for one in first + rest) == sorted(ids)
    assert await sharded.faults() == ()


async def test_a_repeated_claim_takes_nothing_from_a_shard_that_got_work_meanwhile(sharded: Store):
    await submit(sharded.engine, sharded.new_job())
    asked = request(limit=10)
    first = (await sharded.engine.jobs.claim(asked)).claims
    await submit(sharded.engine, *(sharded.new_job() for _ in range(8)))

    again = await sharded.engine.jobs.claim(asked)

    assert (again.claims, again.poll_after_ms) == (first, 0)


async def test_a_claim_over_shards_keeps_to_its_bytes_and_says_that_more_is_due(sharded: Store):
    jobs = [sharded.new_job(args=b"x" * 100) for _ in range(8)]
    await submit(sharded.engine, *jobs)

    answer = await sharded.engine.jobs.claim(request(limit=8, max_bytes=450))

    assert (len(answer.claims), answer.poll_after_ms) == (5, 0)


async def test_of_all_shards_the_soonest_says_when_to_come_again(sharded: Store):
    delays = [9_000, 4_000, 6_000, 8_000]
    await submit(sharded.engine, *(sharded.new_job(delay_ms=delay) for delay in delays))

    answer = await sharded.engine.jobs.claim(request())

    assert (answer.claims, answer.poll_after_ms) == ([], 4_000)


# ── bounds ───────────────────────────────────────────────────────────────────────────────────


async def test_a_claim_of_more_than_a_thousand_is_cut_and_says_to_come_again(store: Store):
    await submit(store.engine, *(store.new_job() for _ in range(1_200)))

    answer = await store.engine.jobs.claim(request(limit=5_000))

    assert (len(answer.claims), answer.poll_after_ms) == (1_000, 0)


@pytest.mark.parametrize(("tenants", "most"), [(1, 60), (500, 300)])
async def test_what_a_claim_costs_does_not_grow_with_the_backlog(
    store: Store, tenants: int, most: int
):
    costs: list[int] = []
    for count in (1_500, 5_000):
        await submit(store.engine, *(store.new_job(tenant=f"t{n % tenants}") for n in range(count)))
        await claim(store.engine, 100)  # the script is known from now on
        before = commands(store)
        assert len(await claim(store.engine, 100)) == 100
        costs.append(commands(store) - before)

    assert max(costs) <= most
    assert costs[1] <= costs[0] + 10


async def test_leases_that_the_clock_stretched_are_cut_however_many_they_are(store: Store):
    await submit(store.engine, *(store.new_job() for _ in range(1_200)))
    for _ in range(3):
        await claim(store.engine, 400)
    store.clock.advance(seconds=-HOUR)
    assert await store.engine.jobs.rescue(10) == []

    store.clock.advance(seconds=30)

    assert len(await store.engine.jobs.rescue(500)) == 500


async def test_a_stretch_without_end_drops_what_there_is(store: Store):
    taken = await running(store.engine, store.new_job())
    kept = tuple(Piece(number, b"line") for number in range(5))
    said = Journal(pieces=kept, drop=(2, 10**12))

    await store.engine.jobs.record([Recording(taken.job.id, taken.fence, said)])

    assert [one.piece.number for one in await store.engine.inspector.logs(taken.job.id)] == [0, 1]


# ── what is left behind ──────────────────────────────────────────────────────────────────────


async def test_a_request_is_known_as_long_as_one_of_its_jobs_runs(store: Store):
    await submit(store.engine, store.new_job())
    asked = request()
    first = (await store.engine.jobs.claim(asked)).claims
    store.clock.advance(seconds=2 * HOUR)
    for _ in range(3):
        await submit(store.engine, store.new_job())
        await claim(store.engine)
    assert store.client.zscore(store.key("requests"), asked.nonce) is None

    assert (await store.engine.jobs.claim(asked)).claims == first


async def test_a_claim_that_finds_nothing_leaves_nothing(store: Store):
    before = store.keys()

    await store.engine.jobs.claim(request("nowhere", limit=10))

    assert store.keys() == before


async def test_turns_of_tenants_that_come_and_go_leave_nothing_but_what_is_counted(store: Store):
    for round_ in range(20):
        names = [f"tenant {round_} {n}" for n in range(20)]
        await submit(store.engine, *(store.new_job(tenant=name) for name in names))
        taken = await claim(store.engine, 20)
        await store.engine.jobs.settle([released(one) for one in taken])
        taken = await claim(store.engine, 20)
        await store.engine.jobs.settle([completed(one) for one in taken])

    assert await store.faults() == ()
    left = store.keys()
    turns = ("turn", "waits", "line", "heads", "asleep", "shut", "active")
    for gone in (*turns, "run", "lease", "claimed"):
        assert gone not in left
    # Virtual times behind the clock are forgotten on the way.
    assert store.client.zcard(store.key("share:1")) <= 40


async def test_names_that_no_key_can_hold_plainly_are_kept_apart(store: Store):
    names = ["a:b", "a%3Ab", "ä", "a b", "a\tb", "~", "a/b", "{a}"]
    jobs = [new_job(tenant=name, queue=name, type=name) for name in names]
    await submit(store.engine, *jobs)

    for job in jobs:
        (taken,) = await claim(store.engine, 10, job.queue, types=(job.type,))
        assert (taken.job.id, taken.job.tenant, taken.job.type) == (job.id, job.tenant, job.type)
    assert await store.faults() == ()


async def test_a_submission_that_is_there_in_part_stores_the_rest_in_order(store: Store):
    jobs = [store.new_job(tenant=f"t{n % 3}") for n in range(30)]
    await submit(store.engine, *jobs[5:20:5])

    answers = await store.engine.jobs.submit(jobs)

    there = [n for n, one in enumerate(answers) if one.answer == "already"]
    assert there == [5, 10, 15]
    mine = [one.job.id for one in await claim(store.engine, 30) if one.job.tenant == "t0"]
    assert mine == [jobs[15].id, *(job.id for job in jobs[::3] if job is not jobs[15])]
    assert await store.faults() == ()


async def test_the_nonce_of_a_claim_is_half_of_its_fence(store: Store):
    await submit(store.engine, store.new_job())
    nonce = runtime.nonce()

    (taken,) = (await store.engine.jobs.claim(request(nonce=nonce))).claims

    assert store.client.hget(store.key("claimed"), nonce) == b"1"
    await store.engine.jobs.settle([completed(taken)])
    assert store.client.hget(store.key("claimed"), nonce) is None
