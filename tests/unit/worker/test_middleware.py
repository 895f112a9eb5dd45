"""Code around handlers, in the slots of a child."""

import asyncio
import contextvars
import threading

import pytest

from lamplighter import App, Context, testing
from lamplighter.config import Settings
from lamplighter.model.errors import InvalidHandler
from lamplighter.model.outcome import (
    Abandoned,
    Cancelled,
    Failed,
    Reject,
    Rejected,
    Released,
    Snooze,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.worker.executor import Executor
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Stop
from tests.unit.worker.fakes import FakeLink, make_run, turns, until

trace = contextvars.ContextVar("trace", default="none")


class Bench:
    def __init__(self, *middleware) -> None:
        self.outcomes: dict[int, object] = {}
        link = FakeLink()
        self.pulse = Pulse(link)
        self.executor = Executor(
            settings=Settings(),
            slots=4,
            link=link,
            pulse=self.pulse,
            on_end=lambda run, outcome: self.outcomes.__setitem__(run.number, outcome),
            on_room=lambda: None,
            middleware=middleware,
        )

    async def outcome(self, run):
        self.executor.offer([run])
        return await self.ended(run)

    async def ended(self, run):
        await until(lambda: run.number in self.outcomes)
        return self.outcomes[run.number]


async def on_the_loop():
    return trace.get()


def in_a_thread():
    return trace.get()


HANDLERS = pytest.mark.parametrize("handler", [on_the_loop, in_a_thread])


@HANDLERS
async def test_the_first_middleware_is_the_outermost_and_its_context_is_the_handlers(handler):
    told = []

    def named(name):
        async def middleware(claim, call_next):
            told.append(f"{name} {claim.job.type}")
            trace.set(f"{trace.get()}>{name}")
            outcome = await call_next()
            told.append(f"{name} {outcome.result.decode()}")
            return outcome

        return middleware

    outcome = await Bench(named("a"), named("b")).outcome(make_run(handler))

    assert outcome == Succeeded(b'"none>a>b"')
    assert told == ["a work", "b work", 'b "none>a>b"', 'a "none>a>b"']


@HANDLERS
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), Failed),
        (SystemExit(1), Failed),
        (asyncio.CancelledError(), Failed),
        (Reject("why"), Rejected),
        (Snooze(2), Snoozed),
    ],
)
async def test_what_a_middleware_raises_is_an_outcome_for_those_outside_too(error, kind, handler):
    seen = []

    async def outer(claim, call_next):
        seen.append(await call_next())
        return seen[0]

    async def inner(claim, call_next):
        await call_next()
        raise error

    outcome = await Bench(outer, inner).outcome(make_run(handler))

    assert isinstance(outcome, kind)
    assert seen == [outcome]


async def test_what_a_middleware_returns_counts():
    async def skip(claim, call_next):
        return Snoozed(5)

    async def forget(claim, call_next):
        await call_next()

    assert await Bench(skip).outcome(make_run(on_the_loop)) == Snoozed(5)
    outcome = await Bench(forget).outcome(make_run(on_the_loop))
    assert isinstance(outcome, Failed)
    assert "no outcome" in outcome.error.message


async def through(claim, call_next):
    return await call_next()


@pytest.mark.parametrize(
    ("why", "outcome"),
    [(Stop.CANCEL, Cancelled()), (Stop.DRAIN, Released(started=True)), (Stop.LOST, None)],
)
async def test_a_stop_reaches_the_handler_on_the_loop_through_middleware(why, outcome):
    seen = []

    async def look(claim, call_next):
        seen.append(await call_next())
        return seen[0]

    started = asyncio.Event()

    async def wait():
        started.set()
        await asyncio.sleep(60)

    bench = Bench(look)
    run = make_run(wait)
    bench.executor.offer([run])
    await started.wait()
    bench.executor.stop([run.number], why)

    assert await bench.ended(run) == outcome
    assert seen == [outcome or Abandoned()]


async def test_a_thread_that_is_told_to_stop_keeps_its_slot_until_it_ends():
    started, release = threading.Event(), threading.Event()

    def stubborn(ctx: Context):
        started.set()
        release.wait(10)
        return ctx.cancel_requested

    bench = Bench(through)
    run = make_run(stubborn)
    bench.executor.offer([run])
    await asyncio.to_thread(started.wait, 10)
    bench.executor.stop([run.number], Stop.CANCEL)
    await turns()
    assert run.number in bench.executor.running
    release.set()

    assert await bench.ended(run) == Succeeded(b"true")


async def test_a_middleware_that_hangs_is_stopped_at_the_timeout():
    async def hang(claim, call_next):
        await asyncio.sleep(60)

    outcome = await Bench(hang).outcome(make_run(on_the_loop, timeout=0.05))

    assert isinstance(outcome, TimedOut)


@HANDLERS
async def test_a_handler_that_must_not_begin_goes_back_to_wait(handler):
    calls = []

    async def silent_once(claim, call_next):
        calls.append(1)
        if len(calls) == 1:
            run.vouched_at = -1.0
            bench.pulse.check = lambda: 0.0
        return await call_next()

    bench = Bench(silent_once)
    run = make_run(handler)
    bench.executor.offer([run])
    await until(lambda: calls and run.number not in bench.executor.running)
    assert list(bench.executor.shared.waiting) == [run]
    assert bench.outcomes == {}


async def test_without_a_thread_the_job_is_given_back(monkeypatch):
    monkeypatch.setattr("lamplighter.worker.shared.NO_THREAD_PAUSE", 0.0)
    bench = Bench(through)
    bench.executor._together._threads.submit = lambda task: False

    assert await bench.outcome(make_run(in_a_thread)) == Released()


async def test_a_handler_in_a_thread_is_not_run_twice_at_once():
    ended = []

    async def twice(claim, call_next):
        both = await asyncio.gather(call_next(), call_next(), return_exceptions=True)
        ended.extend(both)
        return both[0]

    bench = Bench(twice)

    assert await bench.outcome(make_run(in_a_thread)) == Succeeded(b'"none"')
    assert isinstance(ended[1], RuntimeError)
    assert bench.executor.shared.ended == 1


async def test_a_middleware_may_try_again():
    calls = []

    def fail_once():
        calls.append(1)
        if len(calls) == 1:
            raise ValueError

    async def again(claim, call_next):
        outcome = await call_next()
        return await call_next() if isinstance(outcome, Failed) else outcome

    assert await Bench(again).outcome(make_run(fail_once)) == Succeeded()


def plain(claim, call_next): ...


class Named:
    async def __call__(self, claim, call_next):
        return await call_next()


@pytest.mark.parametrize("wrong", [plain, Named, 5, None])
def test_what_is_no_middleware_is_refused(wrong):
    with pytest.raises(InvalidHandler, match="no middleware"):
        App().middleware(wrong)
    with pytest.raises(InvalidHandler):
        App().middleware()


async def test_runs_in_tests_have_their_middleware():
    app = App()
    seen = []

    @app.job
    def add(a: int) -> int:
        return a + 1

    @app.middleware
    async def look(claim, call_next):
        seen.append(claim.job.type)
        return await call_next()

    app.middleware(Named())

    assert await testing.run(add, 1) == 2
    assert seen == ["add"]
