"""Running one handler here and now."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pytest

from lamplighter import (
    App,
    Context,
    InvalidInput,
    JobFailed,
    Reject,
    ResultOmitted,
    Snooze,
    testing,
)
from lamplighter.model.errors import InvalidArguments, SyncInsideLoop
from lamplighter.model.outcome import Failed, Rejected, Snoozed, Succeeded, TimedOut
from lamplighter.worker import executor


@dataclass
class Line:
    item: str
    count: int


@dataclass
class Receipt:
    at: datetime
    lines: list[Line]


async def test_run_gives_the_result_of_the_handler(charge) -> None:
    assert await testing.run(charge, "o-1", 995) == "receipt-1"
    assert await testing.run(charge, order_id="o-1", cents=995) == "receipt-2"


async def test_nothing_is_opened_for_it(charge, production) -> None:
    await testing.run(charge, "o-1")

    assert not production.exists()


async def test_arguments_and_result_travel_as_json_and_come_back_as_their_types(app: App) -> None:
    seen: list[object] = []

    @app.job
    def order(day: date, lines: list[Line]) -> Receipt:
        seen.extend([day, lines])
        return Receipt(datetime(day.year, 1, 1, tzinfo=UTC), lines)

    lines = [Line("lamp", 2)]
    receipt = await testing.run(order, date(2030, 5, 1), lines)

    assert seen == [date(2030, 5, 1), lines]
    assert seen[1] is not lines
    assert receipt == Receipt(datetime(2030, 1, 1, tzinfo=UTC), lines)


async def test_what_submit_refuses_is_refused(app: App, charge) -> None:
    @app.job
    def any_value(value) -> None: ...

    with pytest.raises(InvalidArguments, match="cents"):
        await testing.run(charge, "o-1", "much")
    with pytest.raises(InvalidInput, match="not a finite number"):
        await testing.attempt(any_value, float("nan"))
    with pytest.raises(InvalidInput, match="not JSON"):
        await testing.attempt(any_value, object())


async def test_what_the_handler_raises_is_raised_itself(charge, gateway) -> None:
    gateway.failures = 1

    with pytest.raises(ConnectionError, match="down") as caught:
        await testing.run(charge, "o-1")

    assert caught.traceback[-1].name == "charge"


async def test_attempt_gives_every_outcome_as_a_value(app: App) -> None:
    @app.job(timeout=0.05)
    async def do(what: str) -> str:
        match what:
            case "fail":
                raise ValueError("broken")
            case "reject":
                raise Reject("never")
            case "snooze":
                raise Snooze(60)
            case "hang":
                await asyncio.Event().wait()
        return what

    assert await testing.attempt(do, "work") == Succeeded(b'"work"')
    assert await testing.attempt(do, "reject") == Rejected("never")
    assert await testing.attempt(do, "snooze") == Snoozed(60)
    failed = await testing.attempt(do, "fail")
    assert isinstance(failed, Failed)
    assert (failed.error.type, failed.error.message) == ("ValueError", "broken")
    assert "testing" not in failed.error.traceback.replace("/unit/testing/", "")
    assert isinstance(await testing.attempt(do, "hang"), TimedOut)
    with pytest.raises(JobFailed, match=r"timed out: still running after its timeout of 0\.05 s"):
        await testing.run(do, "hang")
    with pytest.raises(Reject):
        await testing.run(do, "reject")
    with pytest.raises(Snooze):
        await testing.run(do, "snooze")


async def test_a_result_that_would_not_be_kept_is_told(app: App) -> None:
    @app.job
    async def report():
        return object()

    with pytest.raises(ResultOmitted, match="not kept"):
        await testing.run(report)
    outcome = await testing.attempt(report)
    assert isinstance(outcome, Succeeded)
    assert outcome.note


async def test_the_context_is_that_of_a_first_attempt(app: App) -> None:
    @app.job(queue="mail")
    def look(ctx: Context) -> list[object]:
        return [ctx.type, ctx.queue, ctx.tenant, ctx.attempt, ctx.lease, ctx.cancel_requested]

    assert await testing.run(look) == ["look", "mail", "default", 1, 1, False]


async def test_plain_functions_run_in_a_thread_as_in_a_worker(app: App) -> None:
    @app.job
    def where() -> str:
        return threading.current_thread().name

    assert await testing.run(where) != threading.current_thread().name


async def test_a_plain_function_learns_of_its_timeout_and_ends_by_itself(app: App) -> None:
    @app.job(timeout=0.05)
    def dig(ctx: Context) -> None:
        while True:
            ctx.raise_if_cancelled()

    assert isinstance(await testing.attempt(dig), TimedOut)


async def test_a_plain_function_that_does_its_work_late_has_done_it(app: App) -> None:
    @app.job(timeout=0.05)
    def work(ctx: Context) -> str:
        while not ctx.cancel_requested:
            pass
        return "done all the same"

    assert await testing.run(work) == "done all the same"


async def test_long_timeouts_are_kept_too(app: App, monkeypatch) -> None:
    monkeypatch.setattr(executor, "SHORT_TIMEOUT", 0)

    @app.job(timeout=0.05)
    async def hang() -> None:
        await asyncio.Event().wait()

    assert isinstance(await testing.attempt(hang), TimedOut)


async def test_the_error_of_a_plain_function_shows_its_own_frames_only(app: App) -> None:
    @app.job
    def fall() -> None:
        raise LookupError("no such lamp")

    outcome = await testing.attempt(fall)

    assert isinstance(outcome, Failed)
    frames = [line for line in outcome.error.traceback.splitlines() if line.startswith("  File")]
    assert len(frames) == 1
    assert frames[0].endswith("in fall")


def test_without_an_event_loop(charge) -> None:
    assert testing.run_sync(charge, "o-1", 995) == "receipt-1"
    assert isinstance(testing.attempt_sync(charge, "o-1"), Succeeded)


async def test_the_sync_forms_are_refused_inside_a_loop(charge) -> None:
    with pytest.raises(SyncInsideLoop, match=r"testing\.run"):
        testing.run_sync(charge, "o-1")
