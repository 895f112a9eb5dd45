"""Workers that vanish."""

from datetime import timedelta

import pytest

from lamplighter import App, testing
from lamplighter.model.job import JobState, Status
from tests.unit.testing.conftest import NOON


async def test_a_job_whose_worker_vanished_runs_again(t, app: App, charge, gateway) -> None:
    handle = await charge.submit("o-1")

    crashed = await t.crash(charge)
    assert crashed.id == handle.id
    assert await handle.status() is Status.RUNNING
    assert gateway.calls == []
    assert (await t.drain()).ran == 0
    assert await t.rescue() == []

    t.clock.advance(app.settings.lease)
    (rescued,) = await t.rescue()
    assert (rescued.job.id, rescued.state) == (handle.id, JobState.WAITING)
    assert rescued.job.losses == 1

    t.clock.advance(seconds=1)
    assert (await t.drain()).succeeded == 1


async def test_the_effect_of_a_worker_that_vanished_late_happens_twice_under_one_key(
    t, charge, gateway
) -> None:
    handle = await charge.submit("o-1")

    await t.crash(after_run=True)
    assert len(gateway.calls) == 1
    assert await handle.status() is Status.RUNNING
    summary = await t.run_until_idle()

    assert summary.succeeded == 1
    assert len(gateway.calls) == 2
    assert len(set(gateway.calls)) == 1
    assert t.clock.now() >= NOON + timedelta(seconds=t.app.settings.lease)


async def test_at_most_once_is_dead_and_never_runs_twice(t, app: App) -> None:
    calls: list[str] = []

    @app.job(delivery="at_most_once")
    async def fire(name: str) -> None:
        calls.append(name)

    handle = await fire.submit("rocket")
    await t.crash(fire, after_run=True)
    await t.run_until_idle()

    assert calls == ["rocket"]
    assert await handle.status() is Status.DEAD
    assert "at most once" in (await handle.record()).reason


async def test_a_job_that_keeps_losing_its_workers_is_dead(t, charge) -> None:
    handle = await charge.submit("o-1")
    for _ in range(10):
        await t.crash(charge)
        t.clock.advance(t.app.settings.lease)
        await t.rescue()
        t.clock.advance(minutes=10)

    record = await handle.record()
    assert record.state is JobState.DEAD
    assert record.reason.startswith("lost")


async def test_crash_takes_only_the_type_it_is_told(t, app: App, charge) -> None:
    @app.job
    async def mail() -> None: ...

    await charge.submit("o-1")
    wanted = await mail.submit()

    assert (await t.crash(mail)).id == wanted.id


async def test_without_a_job_that_is_due_there_is_nothing_to_crash(t, charge) -> None:
    await charge.options(delay=60).submit("o-1")

    with pytest.raises(testing.NothingDue, match=r"(?s)no job is due.*delay 60 s, scheduled"):
        await t.crash(charge)
