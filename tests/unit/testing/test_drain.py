"""Running the jobs of a test store, and letting time pass for them."""

import asyncio
from datetime import timedelta

import pytest

from lamplighter import App, Context, InvalidInput, JobFailed, Reject, Retry, Snooze, testing
from lamplighter.model.job import JobState, Status
from lamplighter.model.outcome import Succeeded
from lamplighter.port.values import Why
from lamplighter.testing import fleet
from tests.unit.testing.conftest import NOON


async def test_drain_runs_what_is_due(t, charge) -> None:
    first = await charge.submit("o-1", 995)
    await charge.submit("o-2", 100)

    summary = await t.drain()

    assert (summary.ran, summary.succeeded, summary.failed) == (2, 2, 0)
    assert [run.type for run in summary] == ["charge", "charge"]
    assert isinstance(summary.runs[0].outcome, Succeeded)
    assert await first.result(timeout=0) == "receipt-1"
    assert summary.idle


async def test_drain_does_not_move_the_clock(t, charge) -> None:
    await charge.options(delay=3600).submit("o-1")

    assert (await t.drain()).ran == 0
    t.clock.advance(minutes=59)
    assert (await t.drain()).ran == 0
    t.clock.advance(minutes=1)
    assert (await t.drain()).succeeded == 1


async def test_drain_runs_what_its_jobs_submit(t, app: App) -> None:
    seen: list[int] = []

    @app.job
    async def count(down: int) -> None:
        seen.append(down)
        if down:
            await count.submit(down - 1)

    await count.submit(3)
    assert (await t.drain()).ran == 4
    assert seen == [3, 2, 1, 0]


async def test_plain_handlers_submit_too(t, app: App) -> None:
    @app.job
    def first() -> None:
        second.options(queue="other").submit_sync()

    @app.job
    def second() -> None: ...

    await first.submit()
    assert [run.type for run in await t.drain()] == ["first", "second"]


async def test_jobs_run_in_the_order_of_a_worker(t, app: App) -> None:
    seen: list[str] = []

    @app.job
    async def note(name: str) -> None:
        seen.append(name)

    await note.submit("a")
    await note.submit("b")
    await note.options(priority="critical").submit("c")
    await t.drain()

    assert seen == ["c", "a", "b"]


async def test_drain_one_queue_or_so_many_attempts(t, app: App, charge) -> None:
    @app.job
    async def mail() -> None: ...

    await mail.submit()
    await mail.submit()
    await charge.submit("o-1")

    assert [run.type for run in await t.drain("payments")] == ["charge"]
    one = await t.drain(limit=1)
    assert (one.ran, one.idle) == (1, False)
    assert (await t.drain()).ran == 1
    with pytest.raises(InvalidInput, match="limit is `0`"):
        await t.drain(limit=0)


async def test_failures_are_counted_retried_and_keep_what_was_raised(t, charge, gateway) -> None:
    gateway.failures = 1
    handle = await charge.submit("o-1")

    summary = await t.drain()

    assert (summary.failed, summary.retrying, summary.succeeded) == (1, 1, 0)
    assert await handle.status() is Status.RETRYING
    assert isinstance(summary.runs[0].exception, ConnectionError)
    assert "charge attempt 1 failed (ConnectionError: the gateway is down)" in repr(summary)
    with pytest.raises(ConnectionError):
        summary.raise_error()
    t.clock.advance(59)
    assert (await t.drain()).ran == 0
    t.clock.advance(1)
    again = await t.drain()
    assert (again.succeeded, again.runs[0].attempt) == (1, 2)
    again.raise_error()


async def test_a_charge_retried_after_1_5_and_30_minutes(t, charge, gateway) -> None:
    gateway.failures = 3
    handle = await charge.submit("o-1", 995)

    summary = await t.run_until_idle()

    assert (summary.ran, summary.failed, summary.succeeded) == (4, 3, 1)
    assert summary.passed == timedelta(minutes=36)
    assert t.clock.now() == NOON + timedelta(minutes=36)
    assert len(set(gateway.calls)) == 1
    assert await handle.result(timeout=0) == "receipt-4"


async def test_a_charge_that_never_works_is_dead_in_the_end(t, charge, gateway) -> None:
    gateway.failures = 99
    handle = await charge.submit("o-1", 995)

    summary = await t.run_until_idle()

    assert (summary.failed, summary.dead, summary.retrying) == (4, 1, 3)
    with pytest.raises(JobFailed, match="the gateway is down"):
        await handle.result(timeout=0)


async def test_exponential_pauses_have_no_jitter_here(t, app: App) -> None:
    @app.job(retry=Retry(max_attempts=4))
    async def fail() -> None:
        raise ValueError

    await fail.submit()
    assert (await t.run_until_idle()).passed == timedelta(seconds=1 + 2 + 4)


async def test_a_retry_function_that_raises_fails_the_test(t, app: App) -> None:
    def pause(attempt: int) -> float:
        raise LookupError("no pause for that")

    @app.job(retry=Retry(function=pause))
    async def fail() -> None:
        raise ValueError

    await fail.submit()
    with pytest.raises(LookupError, match="no pause for that"):
        await t.drain()


async def test_run_until_idle_stops_after_max_time(t, charge) -> None:
    await charge.options(delay=60).submit("o-1")
    await charge.options(delay=7200).submit("o-2")

    summary = await t.run_until_idle(max_time=timedelta(hours=1))

    assert (summary.ran, summary.idle) == (1, False)
    assert t.clock.now() == NOON + timedelta(hours=1)
    assert (await t.run_until_idle(max_time=3600)).idle
    assert t.clock.now() == NOON + timedelta(hours=2)
    with pytest.raises(InvalidInput, match="max_time"):
        await t.run_until_idle(max_time=-1)


async def test_nothing_to_do_is_idle_at_once(t) -> None:
    summary = await t.run_until_idle()

    assert (summary.ran, summary.idle, summary.passed) == (0, True, timedelta())
    assert repr(summary) == "<Summary of 0 attempts>"


async def test_held_jobs_are_not_waited_for(t, charge) -> None:
    handle = await charge.submit("o-1")
    await handle.hold()

    assert (await t.run_until_idle()).ran == 0
    await handle.unhold()
    assert (await t.run_until_idle()).succeeded == 1


async def test_a_job_without_end_is_told(t, app: App, monkeypatch) -> None:
    monkeypatch.setattr(fleet, "MOST_RUNS", 20)

    @app.job
    async def tick() -> None:
        raise Snooze(60)

    @app.job
    async def spin() -> None:
        await spin.submit()

    await tick.submit()
    assert (await t.run_until_idle(max_time=timedelta(minutes=30))).snoozed == 31
    with pytest.raises(testing.NeverIdle, match="tick attempt 1 snoozed"):
        await t.run_until_idle()
    await spin.submit()
    assert (await t.drain(limit=30)).ran == 30
    with pytest.raises(testing.NeverIdle, match="spin attempt 1 succeeded"):
        await t.drain()
    with pytest.raises(testing.NeverIdle, match="spin attempt 1 succeeded"):
        await t.run_until_idle(max_time=60)


async def test_snooze_reject_and_cancel_are_counted(t, app: App) -> None:
    @app.job
    async def act(ctx: Context, what: str) -> None:
        if what == "snooze":
            raise Snooze(60)
        if what == "reject":
            raise Reject("no")
        await app.handle(ctx.job_id).cancel()
        raise ValueError("too late")

    for what in ("snooze", "reject", "cancel"):
        await act.submit(what)
    summary = await t.drain()

    assert (summary.snoozed, summary.rejected, summary.cancelled) == (1, 1, 1)
    assert summary.dead == 1
    assert "rejected (no), now dead" in repr(summary)


async def test_cancelling_a_running_job_stops_its_handler(t, app: App) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @app.job
    async def wait_for_ever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    handle = await wait_for_ever.submit()
    draining = asyncio.create_task(t.drain())
    await started.wait()
    await handle.cancel()
    summary = await draining

    assert stopped.is_set()
    assert summary.cancelled == 1
    assert await handle.status() is Status.CANCELLED


async def test_somebody_who_waits_for_the_result_is_woken(t, charge) -> None:
    handle = await charge.submit("o-1")
    waiting = asyncio.create_task(handle.result(timeout=10))
    await t.drain()
    assert await waiting == "receipt-1"


async def test_a_drain_that_is_cancelled_stops_the_handler(t, app: App) -> None:
    stopped = asyncio.Event()

    @app.job
    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    handle = await wait_for_ever.submit()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await t.drain()
    await asyncio.wait_for(stopped.wait(), 5)
    assert (await handle.record()).state is JobState.RUNNING


async def test_stored_bytes_that_do_not_fit_are_told_and_charge_nothing(
    t, app: App, charge
) -> None:
    handle = await app.submit("unknown", {"a": 1})

    @app.job(name="unknown")
    async def later(b: int) -> None: ...

    summary = await t.drain()

    assert (summary.failed, summary.misfits) == (0, 1)
    assert "do not fit `unknown`" in summary.runs[0].error.message
    assert "unknown attempt 1 misfit (DoesNotFit" in repr(summary)
    record = await handle.record()
    assert (record.state, record.job.attempt) == (JobState.WAITING, 0)
    assert (await handle.explain()).reasons[0].why is Why.NO_VERSION


async def test_jobs_of_types_without_a_handler_here_stay(t, app: App, charge) -> None:
    handle = await app.submit("elsewhere", {"a": 1})

    assert (await t.run_until_idle()).ran == 0
    assert await handle.status() is Status.READY
