"""A schedule is known by its tenant and its id: the same id in two tenants is two schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput, InvalidName
from lamplighter.model.job import JobState
from lamplighter.port.conformance.builders import claim, completed, record, settle_one
from lamplighter.port.conformance.schedule_builders import (
    BY,
    NIGHTLY,
    at,
    backfill_of,
    dead,
    fire,
    known,
    look,
    new_schedule,
    plan_of,
    put,
    run_at,
    runs_of,
    skip_of,
    states_of,
    wanted_run,
    wishes,
)
from lamplighter.port.schedules import (
    FireAnswer,
    Overlap,
    Put,
    PutAnswer,
    RunState,
    ScheduleAnswer,
    ScheduleFilter,
)

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

TENANTS = ("blue", "green")
VERBS = ("hold_schedules", "unhold_schedules", "delete_schedules")


async def _both(engine: Engine) -> None:
    await put(engine, *(new_schedule(tenant=tenant) for tenant in TENANTS))


async def test_the_same_id_in_two_tenants_is_two_schedules(engine: Engine) -> None:
    await _both(engine)

    changed = new_schedule(tenant="green", spec="other")
    said = await engine.schedules.put_schedules([changed], by="alice")

    assert said == [Put(NIGHTLY, PutAnswer.CHANGED, 2)]
    blue, green = [await known(engine, tenant=tenant) for tenant in TENANTS]
    assert (blue.tenant, blue.spec, blue.version) == ("blue", "every minute", 1)
    assert (green.tenant, green.spec, green.version) == ("green", "other", 2)
    assert await engine.schedules.schedule(NIGHTLY) is None
    assert (await engine.schedules.runs(NIGHTLY, limit=10)).runs == []


async def test_one_call_puts_one_id_for_several_tenants(engine: Engine) -> None:
    said = await engine.schedules.put_schedules(
        [
            new_schedule(tenant="blue", spec="one"),
            new_schedule(tenant="green", spec="one"),
            new_schedule(tenant="blue", spec="two"),
            new_schedule(tenant="red", spec="one", expect_version=1),
        ],
        by="alice",
    )

    created, unknown = Put(NIGHTLY, PutAnswer.CREATED, 1), Put(NIGHTLY, PutAnswer.UNKNOWN, 0)
    assert said == [created, created, Put(NIGHTLY, PutAnswer.CHANGED, 2), unknown]
    assert [(await known(engine, tenant=one)).spec for one in TENANTS] == ["two", "one"]


async def test_schedules_of_one_id_are_due_and_fired_each_for_its_tenant(
    engine: Engine, clock: VirtualClock
) -> None:
    await _both(engine)
    clock.advance(seconds=61)

    found = (await look(engine)).schedules
    plans = [plan_of(one.record, run_at(at(1), tenant=one.record.tenant)) for one in found]
    said = await engine.schedules.fire(plans)

    assert sorted(one.record.tenant for one in found) == ["blue", "green"]
    assert [one.answer for one in said] == [FireAnswer.DONE, FireAnswer.DONE]
    started = [job for one in said for job in one.started]
    assert len(set(started)) == 2
    assert sorted([(await record(engine, one)).job.tenant for one in started]) == list(TENANTS)
    for tenant in TENANTS:
        (run,) = await runs_of(engine, tenant=tenant)
        made = await record(engine, run.job_id or "")
        assert (made.job.tenant, made.job.schedule) == (tenant, NIGHTLY)
        assert (await known(engine, tenant=tenant)).fired == 1


async def test_a_plan_for_one_tenant_leaves_the_others_schedule_as_it_was(engine: Engine) -> None:
    await _both(engine)
    before = await known(engine, tenant="green")

    await fire(engine, run_at(at(2), tenant="blue"), skips=[skip_of(at(1), at(1))], tenant="blue")

    assert await known(engine, tenant="green") == before
    assert await runs_of(engine, tenant="green") == []
    assert await states_of(engine, tenant="blue") == [RunState.SKIPPED, RunState.STARTED]


async def test_the_end_of_a_job_is_told_to_its_own_schedule_alone(
    engine: Engine, clock: VirtualClock
) -> None:
    await _both(engine)
    for tenant in TENANTS:
        await fire(engine, run_at(at(1), Overlap.SKIP, tenant=tenant), tenant=tenant)
    clock.advance(seconds=61)

    taken = {one.job.tenant: one for one in await claim(engine, 2)}
    await settle_one(engine, dead(taken["blue"]))

    assert await states_of(engine, tenant="blue") == [RunState.DEAD]
    assert await states_of(engine, tenant="green") == [RunState.STARTED]
    assert [(await known(engine, tenant=one)).failures for one in TENANTS] == [1, 0]
    await settle_one(engine, completed(taken["green"]))
    assert await states_of(engine, tenant="green") == [RunState.SUCCEEDED]
    assert [(await known(engine, tenant=one)).failures for one in TENANTS] == [1, 0]
    await engine.jobs.replay([taken["blue"].job.id], **BY)
    assert await states_of(engine, tenant="blue") == [RunState.STARTED]
    await engine.jobs.cancel([taken["blue"].job.id], **BY)
    assert await states_of(engine, tenant="blue") == [RunState.CANCELLED]
    assert await states_of(engine, tenant="green") == [RunState.SUCCEEDED]


async def test_a_queued_run_waits_for_its_own_tenants_run_alone(engine: Engine) -> None:
    await _both(engine)
    await fire(engine, run_at(at(1), Overlap.QUEUE_ONE, tenant="blue"), tenant="blue")

    said = await fire(engine, run_at(at(1), Overlap.QUEUE_ONE, tenant="green"), tenant="green")
    behind = await fire(engine, run_at(at(2), Overlap.QUEUE_ONE, tenant="blue"), tenant="blue")

    assert (len(said.started), said.queued) == (1, 0)
    assert (len(behind.started), behind.queued) == (0, 1)


async def test_triggers_and_backfills_are_about_the_tenants_own_schedule(engine: Engine) -> None:
    await _both(engine)
    before = await known(engine, tenant="green")
    wanted, past = wanted_run(tenant="blue"), backfill_of(at(1), at(2))

    said = await engine.schedules.trigger(NIGHTLY, wanted, **BY, tenant="blue")
    began = await engine.schedules.backfill(NIGHTLY, past, **BY, tenant="blue")

    assert (said.job_id, began.answer) == (wanted.job.id, ScheduleAnswer.DONE)
    assert await known(engine, tenant="green") == before
    assert await runs_of(engine, tenant="green") == []
    again = await engine.schedules.trigger(NIGHTLY, wanted, **BY, tenant="blue")
    assert again == said
    assert len(await runs_of(engine, tenant="blue")) == 1


@pytest.mark.parametrize("verb", VERBS)
async def test_wishes_leave_the_other_tenants_schedule_as_it_was(engine: Engine, verb: str) -> None:
    await _both(engine)
    queued = run_at(at(2), Overlap.QUEUE_ALL, tenant="green")
    await fire(engine, run_at(at(1), Overlap.QUEUE_ALL, tenant="green"), queued, tenant="green")
    for tenant in TENANTS if verb == "unhold_schedules" else ():
        await engine.schedules.hold_schedules([NIGHTLY], **BY, tenant=tenant)
    before = await known(engine, tenant="green")

    said = await getattr(engine.schedules, verb)([NIGHTLY], **BY, tenant="blue")

    assert wishes(said) == [ScheduleAnswer.DONE]
    assert await known(engine, tenant="green") == before
    assert len(await runs_of(engine, tenant="green")) == 2
    assert (await record(engine, queued.job.id)).state is JobState.WAITING
    if verb == "delete_schedules":
        assert await engine.schedules.schedule(NIGHTLY, tenant="blue") is None


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_schedules_are_listed_by_tenant_then_by_id(engine: Engine, limit: int) -> None:
    pairs = [
        (tenant, name) for tenant in ("a", "a!", "a b", "ab", "ä") for name in ("x", "y", "xy")
    ]
    await put(engine, *(new_schedule(name, tenant=tenant) for tenant, name in reversed(pairs)))

    assert await _listed(engine, ScheduleFilter(), limit) == sorted(pairs)
    some = ScheduleFilter(tenants=("ab", "a", "nobody", "a\0b"), prefix="x")
    assert await _listed(engine, some, limit) == [
        ("a", "x"),
        ("a", "xy"),
        ("ab", "x"),
        ("ab", "xy"),
    ]
    assert await _listed(engine, ScheduleFilter(prefix="xy"), limit) == [
        (tenant, name) for tenant, name in sorted(pairs) if name == "xy"
    ]


async def _listed(engine: Engine, which: ScheduleFilter, limit: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    cursor: str | None = None
    while True:
        page = await engine.schedules.schedules(which, limit=limit, cursor=cursor)
        assert len(page.schedules) <= limit
        found += [(one.tenant, one.id) for one in page.schedules]
        if (cursor := page.cursor) is None:
            return found


async def test_a_job_of_another_tenant_than_its_schedules_is_refused(engine: Engine) -> None:
    await _both(engine)
    plan = plan_of(await known(engine, tenant="blue"), run_at(at(1), tenant="green"))
    wanted = wanted_run(tenant="blue")
    foreign = replace(wanted, job=replace(wanted.job, tenant="green"))

    with pytest.raises(InvalidInput, match="green"):
        await engine.schedules.fire([plan])
    with pytest.raises(InvalidInput, match="green"):
        await engine.schedules.trigger(NIGHTLY, foreign, **BY, tenant="blue")

    for tenant in TENANTS:
        assert await runs_of(engine, tenant=tenant) == []


async def test_a_tenant_that_could_be_taken_for_another_schedules_is_refused(
    engine: Engine,
) -> None:
    await put(engine, new_schedule("b", tenant="a"))

    with pytest.raises(InvalidName, match="control character"):
        await put(engine, new_schedule("b", tenant="a\x01b"))
    assert await engine.schedules.schedule("b", tenant="a\x01b") is None
