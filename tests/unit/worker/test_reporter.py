"""Hooks: who is told what, and that nobody is disturbed."""

import asyncio
import threading

import pytest

from lamplighter import App, JobReport, Reject, Retry, testing
from lamplighter.config import Settings
from lamplighter.hooks import Hooks
from lamplighter.model import lifecycle
from lamplighter.model.errors import InvalidHandler
from lamplighter.model.job import ErrorInfo
from lamplighter.model.outcome import Cancelled, Failed, Rejected, Snoozed, Succeeded, TimedOut
from lamplighter.observability import events
from lamplighter.worker import reporter
from lamplighter.worker.reporter import Reporter
from lamplighter.worker.settler import Settler
from tests.unit.worker.fakes import make_claim, make_engine, make_run, until

ERROR = ErrorInfo(type="E", message="m")


@pytest.fixture
def told():
    told = []
    stop = events.listen(lambda name, fields: told.append((name, fields)))
    yield told
    stop()


def settled(to: Reporter, outcome, *, attempts: int = 2) -> None:
    claim = make_claim()
    settlement = lifecycle.settle(claim, outcome, retry=Retry(max_attempts=attempts))
    to.settled(claim, settlement, settlement.next.state)


@pytest.mark.parametrize(
    ("outcome", "attempts", "called"),
    [
        (Succeeded(), 2, ["success"]),
        (Failed(ERROR), 2, ["failure"]),
        (TimedOut(ERROR), 2, ["failure"]),
        (Failed(ERROR), 1, ["failure", "death"]),
        (Rejected("why"), 2, ["death"]),
        (Snoozed(1), 2, []),
        (Cancelled(), 2, []),
    ],
)
async def test_each_end_has_its_hooks(outcome, attempts, called):
    hooks, seen = Hooks(), []
    hooks.success.append(lambda report: seen.append("success"))
    hooks.failure.append(lambda report: seen.append("failure"))
    hooks.death.append(lambda report: seen.append("death"))
    to = Reporter(hooks)

    settled(to, outcome, attempts=attempts)
    await to.emptied()

    assert seen == called


async def test_a_report_says_which_job_and_how_it_went():
    hooks, seen = Hooks(), []

    async def look(report):
        seen.append((report, threading.current_thread()))

    hooks.failure.append(look)
    hooks.failure.append(lambda report: seen.append((report, threading.current_thread())))
    to = Reporter(hooks)
    settled(to, Failed(ERROR))
    await to.emptied()

    assert seen[0][0] == JobReport(
        job_id="0" * 26,
        type="work",
        tenant="default",
        queue="default",
        attempt=1,
        outcome="failed",
        error="E: m",
        state="waiting",
    )
    assert seen[0][1] is threading.main_thread()
    assert seen[1][1] is not threading.main_thread()


class Unshowable(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), asyncio.CancelledError(), Unshowable()]
)
async def test_a_hook_that_fails_is_told_and_the_next_is_called(error, told):
    hooks, seen = Hooks(), []

    async def broken(report):
        raise error

    hooks.success += [broken, seen.append]
    to = Reporter(hooks)
    settled(to, Succeeded())
    await to.emptied()

    assert len(seen) == 1
    ((name, fields),) = told
    assert name == events.SERVICE_ERROR
    assert fields["service"] == "hooks"
    assert "broken" in fields["error"]
    assert fields["job_id"] == "0" * 26


async def test_reports_beyond_the_limit_are_dropped_and_that_is_told_once(monkeypatch, told):
    monkeypatch.setattr(reporter, "MOST_WAITING", 2)
    hooks, seen = Hooks(), []
    hooks.success.append(seen.append)
    to = Reporter(hooks)
    for _ in range(5):
        settled(to, Succeeded())
    await to.emptied()

    assert len(seen) == 2
    assert len(told) == 1


async def test_the_settler_reports_what_the_store_accepted():
    engine = make_engine()
    settler = Settler(
        engine,
        Settings(),
        on_settled=print,
        on_ended=print,
        on_forsaken=lambda _: None,
        last_words=lambda _: None,
    )
    hooks, seen = Hooks(), []
    hooks.success.append(lambda report: seen.append(report.job_id[-1]))
    settler.reporter = Reporter(hooks)
    settler.start()

    async def work(): ...

    settler.add(make_run(work, 1), Succeeded())
    await until(lambda: seen)
    await settler.stop()

    assert seen == ["1"]


@pytest.mark.parametrize("wrong", [5, None, lambda: None, lambda a, b: None])
def test_what_cannot_take_a_report_is_refused(wrong):
    app = App()
    for register in (app.on_success, app.on_failure, app.on_death):
        with pytest.raises(InvalidHandler, match="JobReport"):
            register(wrong)


async def test_a_drain_in_a_test_calls_hooks(tmp_path):
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    seen = []

    @app.job
    async def refuse() -> None:
        raise Reject("never")

    @app.on_death
    async def look(report: JobReport) -> None:
        seen.append(report)

    async with testing.store(app) as t:
        await refuse.submit()
        await t.drain()

    assert [(report.outcome, report.error) for report in seen] == [("rejected", "rejected: never")]
