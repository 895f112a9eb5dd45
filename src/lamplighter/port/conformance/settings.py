"""Settings: what operators set acts on the next claim and is remembered with its author."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.model.job import Level, Mark
from lamplighter.model.stride import DEFAULT_MAX_WAIT_MS, MAX_WEIGHT
from lamplighter.port.conformance.builders import claim, handed_out, jobs_of, new_job, submit
from lamplighter.port.values import NewWorker, QueueSettings, TenantSettings, TypeSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "maintenance"}


async def test_a_queue_hold_is_shown_with_its_author(engine: Engine, clock: VirtualClock) -> None:
    await engine.settings.put_queue("letters", QueueSettings(held=True), **BY)

    (queue,) = await engine.inspector.queues()

    assert queue.name == "letters"
    assert queue.held == Mark(by="alice", reason="maintenance", at_ms=clock.now_ms())


async def test_a_field_that_is_not_given_stays_as_it_is(engine: Engine) -> None:
    await engine.settings.put_queue("letters", QueueSettings(max_wait_ms=5_000), **BY)
    await engine.settings.put_queue("letters", QueueSettings(held=True), **BY)
    await engine.settings.put_tenant("blue", TenantSettings(weight=7), **BY)
    await engine.settings.put_tenant("blue", TenantSettings(held=True), **BY)
    await engine.settings.put_tenant("blue", TenantSettings(held=False), **BY)

    (queue,) = await engine.inspector.queues()
    (tenant,) = await engine.inspector.tenants()

    assert queue.max_wait_ms == 5_000
    assert queue.held is not None
    assert (tenant.weight, tenant.held) == (7, None)


async def test_a_hold_that_is_taken_back_leaves_no_mark(engine: Engine) -> None:
    for held in (True, False):
        await engine.settings.put_queue("letters", QueueSettings(held=held), **BY)
        await engine.settings.put_tenant("blue", TenantSettings(held=held), **BY)
    await engine.settings.put_tenant("blue", TenantSettings(weight=2), **BY)

    (queue,) = await engine.inspector.queues()
    (tenant,) = await engine.inspector.tenants()

    assert (queue.held, queue.max_wait_ms) == (None, DEFAULT_MAX_WAIT_MS)
    assert tenant.held is None


async def test_a_hold_set_before_the_first_job_acts_on_it(engine: Engine) -> None:
    await engine.settings.put_queue("letters", QueueSettings(held=True), **BY)
    await engine.settings.put_type("mail", TypeSettings(held=True), **BY)
    await engine.settings.put_tenant("blue", TenantSettings(held=True), **BY)
    await submit(
        engine,
        new_job("work", queue="letters"),
        new_job("mail"),
        new_job(tenant="blue"),
    )

    assert await claim(engine, 10, "letters", "default", types=("work", "mail")) == []


async def test_a_hold_acts_on_the_next_claim(engine: Engine) -> None:
    ids = await submit(engine, *jobs_of("blue", 3))
    assert await handed_out(engine, 1) == ids[:1]

    await engine.settings.put_tenant("blue", TenantSettings(held=True), **BY)
    assert await handed_out(engine, 1) == []

    await engine.settings.put_tenant("blue", TenantSettings(held=False), **BY)
    assert await handed_out(engine, 1) == ids[1:2]


async def test_a_held_tenant_does_not_stand_in_the_way_of_others(engine: Engine) -> None:
    await submit(engine, *jobs_of("blue", 3))
    green = await submit(engine, *jobs_of("green", 3))
    await engine.settings.put_tenant("blue", TenantSettings(held=True), **BY)

    assert await handed_out(engine, 10) == green


async def test_a_job_that_falls_due_under_a_hold_goes_out_after_it(
    engine: Engine, clock: VirtualClock
) -> None:
    (job_id,) = await submit(engine, new_job("mail", delay_ms=1_000))
    await engine.settings.put_type("mail", TypeSettings(held=True), **BY)
    clock.advance(seconds=2)
    assert await claim(engine, 10, types=("mail",)) == []

    await engine.settings.put_type("mail", TypeSettings(held=False), **BY)

    assert [one.job.id for one in await claim(engine, 10, types=("mail",))] == [job_id]


async def test_a_setting_of_one_engine_acts_on_the_claims_of_another(
    engine: Engine, engine_factory: Callable[[], Awaitable[Engine]]
) -> None:
    other = await engine_factory()
    ids = await submit(engine, *jobs_of("blue", 2))
    assert await handed_out(other, 1) == ids[:1]

    await engine.settings.put_queue("default", QueueSettings(held=True), **BY)

    assert await handed_out(other, 1) == []


@pytest.mark.parametrize("what", ["queue", "tenant", "type"])
async def test_every_setting_raises_the_settings_version(engine: Engine, what: str) -> None:
    await engine.membership.join(
        NewWorker(id="w1", host="machine", pid=7, queues=("default",), slots=1)
    )
    versions = [(await engine.membership.beat("w1", 0)).settings_version]
    for held in (True, False):
        if what == "queue":
            await engine.settings.put_queue("x", QueueSettings(held=held), **BY)
        elif what == "tenant":
            await engine.settings.put_tenant("x", TenantSettings(held=held), **BY)
        else:
            await engine.settings.put_type("x", TypeSettings(held=held), **BY)
        versions.append((await engine.membership.beat("w1", 0)).settings_version)

    assert versions[0] < versions[1] < versions[2]


@pytest.mark.parametrize("weight", [0, -1, MAX_WEIGHT + 1])
async def test_a_weight_out_of_range_is_refused(engine: Engine, weight: int) -> None:
    with pytest.raises(InvalidInput):
        await engine.settings.put_tenant("blue", TenantSettings(weight=weight), **BY)


async def test_a_queue_is_read_by_name_as_it_is_listed(engine: Engine, clock: VirtualClock) -> None:
    await submit(engine, *(new_job(queue=queue) for queue in ("a", "b", "b")))
    await submit(engine, new_job(queue="b", delay_ms=60_000), new_job(queue="b", level=Level.HIGH))
    assert len(await claim(engine, 1, "b")) == 1
    await engine.settings.put_queue("c", QueueSettings(held=True), **BY)
    clock.advance(seconds=5)

    listed = await engine.inspector.queues()

    assert [queue.name for queue in listed] == ["a", "b", "c"]
    assert [await engine.inspector.queue(queue.name) for queue in listed] == listed
    for name in ("", "d", "a\x00", "\ud800"):
        assert await engine.inspector.queue(name) is None


async def test_a_tenant_is_read_by_name_as_it_is_listed(engine: Engine) -> None:
    await submit(engine, *jobs_of("blue", 3), *jobs_of("green", 2), new_job("mail", tenant="blue"))
    assert len(await claim(engine, 1)) == 1
    await engine.settings.put_tenant("green", TenantSettings(held=True), **BY)
    await engine.settings.put_tenant("red", TenantSettings(weight=4), **BY)

    listed = await engine.inspector.tenants()

    assert [tenant.name for tenant in listed] == ["blue", "green", "red"]
    assert [await engine.inspector.tenant(tenant.name) for tenant in listed] == listed
    for name in ("", "yellow", "blue\x00", "\ud800"):
        assert await engine.inspector.tenant(name) is None


async def test_a_tenant_beyond_those_that_are_listed_is_read_by_name(engine: Engine) -> None:
    await submit(engine, *(new_job(tenant=f"t{number:04d}") for number in range(1_000)))
    await engine.settings.put_tenant("zzz", TenantSettings(weight=3, held=True), **BY)

    found = await engine.inspector.tenant("zzz")

    assert "zzz" not in {tenant.name for tenant in await engine.inspector.tenants()}
    assert found is not None
    assert (found.weight, found.held is None, found.waiting) == (3, False, 0)
