"""Reads: what people and programs are shown of jobs, queues, tenants and dead letters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.filters import Filter
from lamplighter.model.job import Attempt, Delivery, Extras, JobState, Level
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Cancelled, Rejected, Released
from lamplighter.model.retry import Retry
from lamplighter.port.conformance.builders import (
    BOOM,
    claim,
    claim_one,
    completed,
    died,
    failed,
    finished,
    new_id,
    new_job,
    released,
    rescue_and_claim_again,
    running,
    settle_one,
    submit,
)
from lamplighter.port.values import COUNT_LIMIT, QueueSettings, TenantSettings

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "maintenance"}
EVERYTHING = Filter()


async def test_a_job_that_does_not_exist_is_none(engine: Engine) -> None:
    job_id = new_id()

    assert await engine.inspector.job(job_id) is None
    assert await engine.inspector.explain(job_id) is None
    assert await engine.inspector.attempts(job_id) == []


async def test_jobs_are_listed_newest_first_in_pages(engine: Engine, clock: VirtualClock) -> None:
    ids: list[str] = []
    for _ in range(7):
        ids += await submit(engine, new_job())
        clock.advance(ms=1)

    assert await _list(engine, EVERYTHING, limit=3) == ids[::-1]
    assert await _list(engine, EVERYTHING, limit=100) == ids[::-1]


async def test_a_page_goes_on_where_it_stopped_although_jobs_arrive(engine: Engine) -> None:
    ids = await submit(engine, *(new_job() for _ in range(4)))
    page = await engine.inspector.jobs(EVERYTHING, limit=2)
    await submit(engine, new_job())

    rest = await _list(engine, EVERYTHING, limit=2, cursor=page.cursor)

    assert [record.job.id for record in page.jobs] + rest == ids[::-1]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("ready", {"ready"}),
        ("scheduled", {"scheduled"}),
        ("retrying", {"retrying"}),
        ("paused", {"paused"}),
        ("running", {"running"}),
        ("cancelling", {"cancelling"}),
        ("succeeded", {"succeeded"}),
        ("dead", {"dead"}),
        ("cancelled", {"cancelled"}),
        ("pending", {"ready", "scheduled", "retrying"}),
        ("failed", {"dead"}),
        ("expired", set[str]()),
    ],
)
async def test_jobs_are_found_by_their_shown_status(
    engine: Engine, status: str, expected: set[str]
) -> None:
    ids = await _one_of_each(engine)

    found = await _list(engine, Filter(statuses=(status,)))

    assert set(found) == {ids[name] for name in expected}


async def test_several_statuses_are_either_of_them(engine: Engine) -> None:
    ids = await _one_of_each(engine)

    found = await _list(engine, Filter(statuses=("running", "failed")))

    assert set(found) == {ids["running"], ids["dead"]}


async def test_all_given_fields_of_a_filter_must_match(engine: Engine) -> None:
    wanted = new_job("mail", queue="letters", tenant="blue", extras=Extras(tags=("urgent",)))
    others = [
        new_job("other", queue="letters", tenant="blue", extras=wanted.extras),
        new_job("mail", queue="other", tenant="blue", extras=wanted.extras),
        new_job("mail", queue="letters", tenant="other", extras=wanted.extras),
        new_job("mail", queue="letters", tenant="blue", extras=Extras(tags=("urgently",))),
    ]
    await submit(engine, wanted, *others)

    found = await _list(
        engine,
        Filter(types=("mail",), queues=("letters",), tenants=("blue",), tag="urgent"),
    )

    assert found == [wanted.id]
    assert len(await _list(engine, Filter(types=("mail", "other")))) == 5


async def test_jobs_are_found_by_when_they_finished(engine: Engine, clock: VirtualClock) -> None:
    ids: list[str] = []
    start = clock.now_ms()
    for _ in range(3):
        ids.append((await finished(engine)).job.id)
        clock.advance(seconds=10)
    await submit(engine, new_job())

    found = await _list(
        engine,
        Filter(finished_after_ms=start + 5_000, finished_before_ms=start + 15_000),
    )

    assert found == [ids[1]]


async def test_jobs_are_found_by_when_they_were_created(
    engine: Engine, clock: VirtualClock
) -> None:
    start, ids = clock.now_ms(), list[str]()
    for _ in range(3):
        ids += await submit(engine, new_job())
        clock.advance(seconds=10)

    after = await _list(engine, Filter(created_after_ms=start + 10_000))
    between = await _list(
        engine,
        Filter(created_after_ms=start + 10_000, created_before_ms=start + 20_000),
    )

    assert sorted(after) == sorted(ids[1:])
    assert between == [ids[1]]


async def test_jobs_are_found_by_the_fingerprint_of_their_error(engine: Engine) -> None:
    first, _ = await died(engine), await _died_of(engine, "another")

    found = await _list(engine, Filter(statuses=("dead",), fingerprints=("boom",)))

    assert found == [first.job.id]


async def test_counts_are_per_state(engine: Engine) -> None:
    await _one_of_each(engine)

    counts = await engine.inspector.counts()

    expected = {"waiting": 4, "running": 2, "succeeded": 1, "dead": 1, "cancelled": 1}
    assert {state: number for state, number in counts.items() if number} == expected
    assert set(counts) <= {state.value for state in JobState}


async def test_waiting_jobs_of_a_queue_are_counted_as_far_as_one_asks(engine: Engine) -> None:
    await submit(engine, *(new_job() for _ in range(5)))
    await submit(engine, *(new_job(delay_ms=60_000, level=Level.LOW) for _ in range(3)))

    (few,) = await engine.inspector.queues(most=2)
    (enough,) = await engine.inspector.queues(most=6)

    assert (few.ready, few.scheduled) == (2, 2)
    assert (few.by_level[Level.NORMAL], few.by_level[Level.LOW]) == (2, 2)
    assert (enough.ready, enough.scheduled) == (5, 3)
    assert (enough.by_level[Level.NORMAL], enough.by_level[Level.LOW]) == (5, 3)


async def test_queues_are_listed_by_name_alone_if_nothing_is_to_be_counted(engine: Engine) -> None:
    await submit(engine, new_job(queue="b"), new_job(queue="c", delay_ms=60_000))
    await engine.settings.put_queue("a", QueueSettings(), **BY)

    found = await engine.inspector.queues(most=0)

    assert [queue.name for queue in found] == ["a", "b", "c"]
    assert [queue.ready + queue.scheduled for queue in found] == [0, 0, 0]


async def test_queues_are_listed_by_name_with_what_they_hold(
    engine: Engine, clock: VirtualClock
) -> None:
    await submit(engine, new_job(queue="b"), new_job(queue="b", delay_ms=60_000))
    await submit(engine, new_job(queue="a"), new_job(queue="b", level=Level.HIGH))
    await claim_one(engine, "a")
    clock.advance(seconds=5)

    a, b = await engine.inspector.queues()

    assert (a.name, a.ready, a.scheduled, a.running, a.handouts) == ("a", 0, 0, 1, 1)
    assert (b.name, b.ready, b.scheduled, b.running, b.handouts) == ("b", 2, 1, 0, 0)
    assert (a.oldest_due_ms, b.oldest_due_ms) == (None, 5_000)
    assert max(b.oldest_by_level.values()) == 5_000
    assert not a.oldest_by_level
    assert {level: n for level, n in b.by_level.items() if n} == {Level.NORMAL: 2, Level.HIGH: 1}


async def test_tenants_are_listed_by_name_with_settings_and_counts(engine: Engine) -> None:
    await engine.settings.put_tenant("c", TenantSettings(weight=5), **BY)
    await submit(engine, new_job(tenant="b"), new_job(tenant="b"), new_job(tenant="a"))
    await claim(engine, 1)

    found = await engine.inspector.tenants()

    assert [(t.name, t.weight, t.waiting, t.running) for t in found] == [
        ("a", 1, 0, 1),
        ("b", 1, 2, 0),
        ("c", 5, 0, 0),
    ]


async def test_a_tenant_without_settings_waiting_or_running_jobs_is_not_listed(
    engine: Engine,
) -> None:
    await finished(engine, new_job(tenant="done"))

    assert await engine.inspector.tenants() == []


async def test_a_running_attempt_is_told(engine: Engine, clock: VirtualClock) -> None:
    taken = await running(engine)

    (attempt,) = await engine.inspector.attempts(taken.job.id)

    assert attempt == Attempt(
        job_id=taken.job.id,
        generation=0,
        number=1,
        lease=taken.fence.lease,
        nonce=taken.fence.nonce,
        worker=taken.worker,
        outcome="running",
        started_at_ms=clock.now_ms(),
        finished_at_ms=None,
        error=None,
    )


async def test_attempts_are_told_oldest_first_up_to_the_one_that_succeeded(
    engine: Engine, clock: VirtualClock
) -> None:
    first = await running(engine)
    await settle_one(engine, failed(first))
    clock.advance(seconds=10)
    await settle_one(engine, released(await claim_one(engine)))
    last, started = await claim_one(engine), clock.now_ms()
    clock.advance(seconds=3)
    await settle_one(engine, completed(last))

    failure, success = await engine.inspector.attempts(first.job.id)

    assert (failure.lease, failure.outcome, failure.error) == (1, "failed", BOOM)
    assert (success.lease, success.nonce) == (3, last.fence.nonce)
    assert (success.outcome, success.error, success.number) == ("succeeded", None, 2)
    assert (success.started_at_ms, success.finished_at_ms) == (started, started + 3_000)


async def test_of_many_attempts_the_newest_are_told_and_those_before_them_by_lease(
    engine: Engine, clock: VirtualClock
) -> None:
    again = Retry(max_attempts=1_000, base=0.001, factor=1, jitter=0)
    taken = await running(engine)
    for _ in range(4):
        await settle_one(engine, failed(taken, retry=again))
        clock.advance(seconds=1)
        taken = await claim_one(engine)
    job_id = taken.job.id

    async def leases(**which: int) -> list[int]:
        return [one.lease for one in await engine.inspector.attempts(job_id, **which)]

    assert await leases() == [1, 2, 3, 4, 5]
    assert await leases(limit=2) == [4, 5]
    assert await leases(until=3, limit=2) == [2, 3]
    assert await leases(until=1) == [1]
    assert await leases(until=0) == []


async def test_several_attempts_have_a_number_if_the_handler_did_not_fail(
    engine: Engine, clock: VirtualClock
) -> None:
    first = await running(engine)
    clock.advance(seconds=31)
    await rescue_and_claim_again(engine, first)

    attempts = await engine.inspector.attempts(first.job.id)

    found = [(one.outcome, one.number, one.lease) for one in attempts]
    assert found == [("abandoned", 1, 1), ("running", 1, 2)]


@pytest.mark.parametrize("outcome", ["cancelled", "released", "failed"])
async def test_the_attempt_in_which_a_job_was_cancelled_is_told(
    engine: Engine, clock: VirtualClock, outcome: str
) -> None:
    taken = await running(engine)
    await engine.jobs.cancel([taken.job.id], **BY)
    clock.advance(seconds=2)
    ends = {
        "cancelled": settle(taken, Cancelled()),
        "released": released(taken),
        "failed": failed(taken),
    }

    await settle_one(engine, ends[outcome])

    (attempt,) = await engine.inspector.attempts(taken.job.id)
    assert attempt.outcome == ("failed" if outcome == "failed" else "cancelled")
    assert (attempt.nonce, attempt.finished_at_ms) == (taken.fence.nonce, clock.now_ms())


async def test_a_job_cancelled_while_it_waits_has_no_attempt_for_that(engine: Engine) -> None:
    taken = await running(engine)
    await settle_one(engine, released(taken))

    await engine.jobs.cancel([taken.job.id], **BY)

    assert await engine.inspector.attempts(taken.job.id) == []


async def test_an_attempt_that_killed_its_job_is_told_once(engine: Engine) -> None:
    once = await running(engine, new_job(delivery=Delivery.AT_MOST_ONCE))
    never = await running(engine)

    await settle_one(engine, settle(once, Released(started=True)))
    await settle_one(engine, settle(never, Rejected("no")))

    for taken, outcome in ((once, "released"), (never, "rejected")):
        attempts = await engine.inspector.attempts(taken.job.id)
        assert [(one.outcome, one.number) for one in attempts] == [(outcome, 1)]


async def test_dead_letters_are_grouped_most_frequent_first(
    engine: Engine, clock: VirtualClock
) -> None:
    await _died_of(engine, "rare")
    for _ in range(2):
        await _died_of(engine, "frequent")
    clock.advance(seconds=1)
    last = await _died_of(engine, "frequent")
    await finished(engine)

    frequent, rare = (await engine.inspector.dead_groups(EVERYTHING)).groups

    assert (frequent.fingerprint, frequent.type, frequent.count) == ("frequent", "work", 3)
    assert (frequent.example, frequent.newest_at_ms) == (last, clock.now_ms())
    assert frequent.error is not None
    assert (rare.fingerprint, rare.count) == ("rare", 1)


async def test_dead_letters_are_filtered_before_they_are_grouped(engine: Engine) -> None:
    await _died_of(engine, "boom", tenant="blue")
    await _died_of(engine, "boom", tenant="green")

    (group,) = (await engine.inspector.dead_groups(Filter(tenants=("blue",)))).groups

    assert group.count == 1


@pytest.mark.parametrize("statuses", [(), ("dead",), ("dead", "running")])
async def test_jobs_without_a_fingerprint_are_found_by_the_empty_one(
    engine: Engine, statuses: tuple[str, ...]
) -> None:
    await _died_of(engine, "boom")
    taken = await running(engine)
    await settle_one(engine, settle(taken, Rejected("no")))
    which = Filter(statuses=statuses, types=("work",), fingerprints=("",))

    assert await _list(engine, which) == [taken.job.id]
    (group,) = (await engine.inspector.dead_groups(which)).groups
    assert (group.fingerprint, group.count, group.example) == ("", 1, taken.job.id)
    either = Filter(statuses=("dead",), fingerprints=("", "boom"))
    assert len(await _list(engine, either)) == 2


async def test_groups_tell_whether_older_dead_letters_were_not_counted(engine: Engine) -> None:
    for _ in range(20):
        await _died_of(engine, "boom")

    some = await engine.inspector.dead_groups(EVERYTHING, most=1)
    none = await engine.inspector.dead_groups(Filter(tenants=("nobody",)), most=1)
    whole = await engine.inspector.dead_groups(EVERYTHING, most=20)

    assert some.at_least
    assert sum(group.count for group in some.groups) < 20
    assert (none.groups, none.at_least) == ([], True)
    assert [group.count for group in whole.groups] == [20]
    assert not whole.at_least


async def test_many_scheduled_jobs_of_one_tenant_hide_no_ready_job_of_another(
    engine: Engine,
) -> None:
    later = [new_job(tenant="a", delay_ms=60_000) for _ in range(COUNT_LIMIT)]
    await submit(engine, *later)
    await submit(engine, new_job(tenant="b"))

    (queue,) = await engine.inspector.queues()

    assert (queue.ready, queue.scheduled) == (1, COUNT_LIMIT)


async def test_reading_moves_nothing(engine: Engine) -> None:
    ids = await submit(engine, *(new_job() for _ in range(3)))
    for job_id in ids:
        await engine.inspector.job(job_id)
        await engine.inspector.explain(job_id)
    await engine.inspector.counts()
    await engine.inspector.queues()

    assert [one.job.id for one in await claim(engine, 10)] == ids


async def _list(
    engine: Engine, which: Filter, *, limit: int = 100, cursor: str | None = None
) -> list[str]:
    found: list[str] = []
    while True:
        page = await engine.inspector.jobs(which, limit=limit, cursor=cursor)
        assert len(page.jobs) <= limit
        found += [record.job.id for record in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return found


async def _one_of_each(engine: Engine) -> dict[str, str]:
    """A job in each shown status that can be reached, by its name."""
    ids: dict[str, str] = {}
    ids["succeeded"] = (await finished(engine)).job.id
    ids["dead"] = (await died(engine)).job.id
    ids["running"] = (await running(engine)).job.id
    stopping = await running(engine)
    ids["cancelling"] = stopping.job.id
    await engine.jobs.cancel([stopping.job.id], **BY)
    again = await running(engine)
    ids["retrying"] = again.job.id
    await settle_one(engine, failed(again))
    ids["ready"], ids["scheduled"], ids["paused"], ids["cancelled"] = await submit(
        engine, new_job(), new_job(delay_ms=60_000), new_job(held=True), new_job()
    )
    await engine.jobs.cancel([ids["cancelled"]], **BY)
    return ids


async def _died_of(engine: Engine, fingerprint: str, *, tenant: str = "default") -> str:
    taken = await running(engine, new_job(tenant=tenant))
    error = replace(BOOM, fingerprint=fingerprint)
    await settle_one(engine, failed(taken, error, retry=Retry(max_attempts=1)))
    return taken.job.id
