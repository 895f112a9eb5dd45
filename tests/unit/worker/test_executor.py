"""Running handlers in the slots of a child."""

import asyncio
import contextvars
import threading

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.context import Context
from lamplighter.model.outcome import (
    Cancelled,
    Failed,
    Misfit,
    Reject,
    Rejected,
    Released,
    Snooze,
    Snoozed,
    Succeeded,
    TimedOut,
)
from lamplighter.worker.executor import Executor
from lamplighter.worker.link import Resync, Started
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.run import Stop
from tests.unit.worker.fakes import FakeLink, make_run, until


class Bench:
    """An executor with everything around it in sight."""

    def __init__(self, slots: int = 4) -> None:
        self.link = FakeLink()
        self.pulse = Pulse(self.link)
        self.outcomes: dict[int, object] = {}
        self.room = 0
        self.executor = Executor(
            settings=Settings(),
            slots=slots,
            link=self.link,
            pulse=self.pulse,
            on_end=lambda run, outcome: self.outcomes.__setitem__(run.number, outcome),
            on_room=self._on_room,
        )

    def _on_room(self) -> None:
        self.room += 1

    async def outcome(self, run):
        self.executor.offer([run])
        await until(lambda: run.number in self.outcomes)
        return self.outcomes[run.number]


async def returns():
    return {"a": 1}


async def greets(name: str):
    return f"hello {name}"


def greets_in_thread(ctx: Context, name: str):
    return f"hello {name} from {ctx.job_id[-1]}"


@pytest.mark.parametrize(
    ("function", "args", "result"),
    [
        (returns, b"{}", b'{"a":1}'),
        (greets, b'{"name":"you"}', b'"hello you"'),
        (greets_in_thread, b'{"name":"you"}', b'"hello you from 0"'),
    ],
)
async def test_what_a_handler_returns_is_the_result(function, args, result):
    assert await Bench().outcome(make_run(function, args=args)) == Succeeded(result)


async def test_a_result_that_cannot_be_kept_is_a_success_with_a_note():
    async def work():
        return object()

    outcome = await Bench().outcome(make_run(work))

    assert isinstance(outcome, Succeeded)
    assert outcome.result is None
    assert outcome.note


def raiser(error, *, thread: bool):
    if thread:

        def work():
            raise error
    else:

        async def work():
            raise error

    return work


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), Failed),
        (SystemExit(1), Failed),
        (KeyboardInterrupt(), Failed),
        (GeneratorExit(), Failed),
        (asyncio.CancelledError(), Failed),
        (Reject("why"), Rejected),
        (Snooze(2), Snoozed),
        (Snooze(float("nan")), Failed),
        (Snooze(-1), Failed),
        (Snooze("soon"), Failed),
    ],
)
async def test_whatever_a_handler_raises_is_an_outcome(error, kind, thread):
    bench = Bench()

    assert isinstance(await bench.outcome(make_run(raiser(error, thread=thread))), kind)
    assert await bench.outcome(make_run(returns, 1)) == Succeeded(b'{"a":1}')


class Nasty:
    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__


class NastyError(Exception):
    def __str__(self) -> str:
        raise ValueError


class NastyDelay(float):
    def __ge__(self, other: object) -> bool:
        raise ValueError

    __le__ = __ge__


class BareReject(Reject):
    def __init__(self) -> None:
        pass


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Reject(Nasty()), Rejected),
        (BareReject(), Failed),
        (Snooze(NastyDelay(1)), Failed),
        (NastyError(), Failed),
    ],
)
async def test_exceptions_that_raise_themselves_are_outcomes_too(error, kind, thread):
    bench = Bench()

    assert isinstance(await bench.outcome(make_run(raiser(error, thread=thread))), kind)
    assert bench.executor.running == {}


async def test_arguments_whose_check_wants_to_end_the_process_are_a_failure():
    bench = Bench()
    broken, sound = make_run(returns, 0), make_run(returns, 1)

    def leave(_written: bytes) -> dict[str, object]:
        raise SystemExit

    broken.type.decode = leave
    bench.executor.offer([broken, sound])
    await until(lambda: len(bench.outcomes) == 2)

    assert isinstance(bench.outcomes[0], Failed)
    assert bench.outcomes[1] == Succeeded(b'{"a":1}')


async def test_bytes_that_are_not_json_are_rejected():
    outcome = await Bench().outcome(make_run(returns, args=b"{"))

    assert isinstance(outcome, Rejected)
    assert outcome.reason == "arguments are not JSON"


async def test_arguments_that_do_not_fit_are_no_failure():
    outcome = await Bench().outcome(make_run(greets, args=b'{"title":"you"}'))

    assert isinstance(outcome, Misfit)
    assert outcome.error.type == "DoesNotFit"
    assert outcome.error.traceback == ""


async def test_a_batch_is_reported_as_one_message_before_its_first_handler_runs():
    bench = Bench(slots=3)
    reported = []

    async def work():
        reported.append(len(bench.link.of(Started)))

    bench.executor.offer([make_run(work, n) for n in range(5)])
    await until(lambda: len(bench.outcomes) == 5)

    starts = [[number for number, _ in message.runs] for message in bench.link.of(Started)]
    assert starts == [[0, 1, 2], [3, 4]]
    assert reported == [1, 1, 1, 2, 2]


async def test_no_more_handlers_run_than_there_are_slots():
    bench = Bench(slots=2)
    gate = asyncio.Event()

    async def work():
        await gate.wait()

    bench.executor.offer([make_run(work, n) for n in range(5)])
    await asyncio.sleep(0)

    assert len(bench.executor.running) == 2
    assert len(bench.executor.shared.waiting) == 3
    gate.set()
    await until(lambda: len(bench.outcomes) == 5)
    assert bench.executor.shared.ended == 5
    assert bench.room


async def test_nothing_runs_before_its_report_has_left():
    bench = Bench()
    bench.link.blocked = True

    bench.executor.offer([make_run(returns)])
    for _ in range(5):
        await asyncio.sleep(0)
    assert bench.outcomes == {}

    bench.link.unblocked.set()
    await until(lambda: bench.outcomes)


async def test_a_congested_line_delays_the_start():
    bench = Bench()
    bench.link.congested = True

    bench.executor.offer([make_run(returns)])
    await asyncio.sleep(0)
    assert bench.link.of(Started) == []

    bench.link.congested = False
    bench.link.unblocked.set()
    await until(lambda: bench.outcomes)


async def waits():
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    ("why", "outcome"),
    [
        (Stop.CANCEL, Cancelled()),
        (Stop.DRAIN, Released(started=True)),
        (Stop.LOST, None),
    ],
)
async def test_a_stopped_coroutine_ends_as_it_was_stopped(why, outcome):
    bench = Bench()
    run = make_run(waits)
    bench.executor.offer([run])
    await until(lambda: run.entered)

    bench.executor.stop([run.number], why)
    await until(lambda: bench.outcomes)

    assert bench.outcomes == {0: outcome}


async def test_a_coroutine_stopped_before_its_first_step_ends_too():
    bench = Bench()
    run = make_run(waits)
    bench.executor.offer([run])
    assert not run.entered

    bench.executor.stop([run.number], Stop.LOST)
    await until(lambda: bench.outcomes)

    assert bench.outcomes == {0: None}


async def test_lost_wins_over_an_earlier_reason_to_stop():
    bench = Bench()

    async def work():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)

    run = make_run(work)
    bench.executor.offer([run])
    await until(lambda: run.entered)

    bench.executor.stop([0], Stop.CANCEL)
    await asyncio.sleep(0)
    bench.executor.stop([0], Stop.LOST)
    await until(lambda: bench.outcomes)

    assert bench.outcomes == {0: None}


async def test_an_error_while_being_stopped_does_not_charge_an_attempt():
    bench = Bench()

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            raise OSError("connection closed")

    run = make_run(work)
    bench.executor.offer([run])
    await until(lambda: run.entered)
    bench.executor.stop_all()
    await until(lambda: bench.outcomes)

    assert bench.outcomes == {0: Released(started=True)}


async def test_a_thread_sees_that_it_should_stop():
    bench = Bench()
    entered = threading.Event()

    def work(ctx: Context):
        entered.set()
        while True:
            ctx.raise_if_cancelled()

    bench.executor.offer([make_run(work)])
    await asyncio.to_thread(entered.wait)
    bench.executor.stop([0], Stop.CANCEL)
    await until(lambda: bench.outcomes)

    assert bench.outcomes == {0: Cancelled()}


async def test_a_short_timeout_is_kept_without_the_pulse():
    began = runtime.monotonic()
    outcome = await Bench().outcome(make_run(waits, timeout=0.1))

    assert isinstance(outcome, TimedOut)
    assert "0.1 s" in outcome.error.message
    assert runtime.monotonic() - began < 1.0


async def test_a_long_timeout_is_kept_by_the_pulse():
    bench = Bench()
    run = make_run(waits, timeout=3600)
    bench.executor.offer([run])
    await until(lambda: run.entered)

    bench.executor.tick()
    assert run.stop is None
    run.soft_end -= 3600
    bench.executor.tick()
    await until(lambda: bench.outcomes)

    assert isinstance(bench.outcomes[0], TimedOut)


async def test_what_waits_is_given_back_when_the_executor_closes():
    bench = Bench(slots=1)
    bench.executor.offer([make_run(waits, 0), make_run(returns, 1)])

    bench.executor.close()
    bench.executor.offer([make_run(returns, 2)])

    assert bench.outcomes == {1: Released(), 2: Released()}
    bench.executor.stop_all()
    await bench.executor.idle()


async def test_after_a_silence_nothing_starts_unconfirmed():
    bench = Bench(slots=1)
    old = [make_run(returns, n, vouched_at=runtime.boottime() - 10) for n in range(3)]
    bench.pulse._last -= 10

    bench.executor.offer(old)
    await asyncio.sleep(0)

    assert bench.link.of(Started) == []
    assert [message.numbers for message in bench.link.of(Resync)] == [[0, 1, 2]]

    asked, asked_at = bench.pulse.answered()
    bench.executor.confirm(asked, [0, 2], asked_at)
    await until(lambda: len(bench.outcomes) == 3)

    assert bench.outcomes[1] is None
    assert bench.outcomes[2] == Succeeded(b'{"a":1}')


async def test_a_claim_made_after_the_silence_needs_no_confirmation():
    bench = Bench()
    bench.pulse._last -= 10
    bench.pulse.check()

    outcome = await bench.outcome(make_run(returns, vouched_at=runtime.boottime()))

    assert outcome == Succeeded(b'{"a":1}')
    assert bench.link.of(Resync) == []


async def test_handlers_do_not_share_context_variables():
    variable = contextvars.ContextVar("variable", default=0)

    async def work():
        variable.set(variable.get() + 1)
        return variable.get()

    bench = Bench()

    assert await bench.outcome(make_run(work, 0)) == Succeeded(b"1")
    assert await bench.outcome(make_run(work, 1)) == Succeeded(b"1")


@pytest.mark.parametrize("function", [greets, greets_in_thread])
async def test_a_stop_between_the_report_and_the_first_step_is_noticed(function):
    bench = Bench()
    claimed_at = runtime.boottime()
    said = bench.link.flush

    def stop_while_writing() -> bool:
        # As if the process had been stopped here: its claims may have been given back meanwhile.
        bench.pulse._last -= 10
        bench.link.flush = said
        return said()

    bench.link.flush = stop_while_writing
    bench.executor.offer([make_run(function, args=b'{"name":"x"}', vouched_at=claimed_at)])
    await until(lambda: bench.link.of(Resync))

    assert bench.outcomes == {}
    assert bench.executor.running == {}
    asked, asked_at = bench.pulse.answered()
    bench.executor.confirm(asked, [], asked_at)
    assert bench.outcomes == {0: None}


async def test_claims_nobody_vouches_for_are_lost():
    bench = Bench(slots=1)
    now = runtime.boottime()
    old, fresh, waiting = (
        make_run(waits, number, vouched_at=at) for number, at in enumerate([now, now, now])
    )
    bench.executor.shared.slots = 2
    bench.executor.offer([old, fresh, waiting])
    await until(lambda: old.entered and fresh.entered)
    fresh.vouched_at = now + 20

    assert bench.executor.unvouched(kept_since=now - 5, believed=10.0, now=now + 9) == []
    assert bench.executor.unvouched(kept_since=now + 5, believed=10.0, now=now + 12) == []
    assert bench.executor.unvouched(kept_since=now - 5, believed=10.0, now=now + 11) == [0, 2]
    bench.executor.close()
    bench.executor.stop_all()
    await bench.executor.idle()
