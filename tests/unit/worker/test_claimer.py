"""Taking from the store what there is room for."""

import asyncio

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.job import Level
from lamplighter.model.outcome import Released
from lamplighter.model.stride import QueueStride
from lamplighter.worker.bench import Numbers
from lamplighter.worker.claimer import Claimer
from lamplighter.worker.executor import Executor
from lamplighter.worker.link import Claimed, Started
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.rush import PAUSE, PORTION, Way
from tests.unit.worker.fakes import Clock, FakeLink, make_claim, make_engine, registry_of, until


async def work():
    pass


class Bench:
    def __init__(
        self,
        slots: int = 3,
        queues: QueueStride | None = None,
        engine=None,
        requirements=("",),
        **settings,
    ) -> None:
        self.engine = engine or make_engine()
        self.jobs = self.engine.jobs
        self.link = FakeLink()
        self.ended: list = []
        self.way = Way()
        given = Settings(**settings)
        self.executor = Executor(
            settings=given,
            slots=slots,
            link=self.link,
            pulse=Pulse(self.link),
            on_end=self._on_end,
            on_room=self._on_room,
        )
        self.claimer = Claimer(
            self.engine,
            given,
            worker="w/c0",
            registry=registry_of(work),
            types=lambda: self.types,
            requirements=requirements,
            queues=queues or QueueStride(("default",)),
            executor=self.executor,
            bench=self.executor.shared,
            numbers=Numbers(),
            link=self.link,
            on_end=self._on_end,
            is_kept=lambda: self.kept,
            way=self.way,
        )
        self.kept = True
        self.types = ("work",)

    def _on_room(self) -> None:
        self.claimer.room_changed()

    def _on_end(self, run, outcome) -> None:
        self.ended.append((run.number, outcome))


@pytest.fixture
async def bench():
    bench = Bench()
    yield bench
    await bench.claimer.stop()


@pytest.mark.parametrize(
    ("poll_after_ms", "idle_ms", "seconds"),
    [(None, 0, 1.0), (300, 0, 0.3), (5_000, 0, 1.0), (None, 9_000, 9.0), (5_000, 9_000, 5.0)],
)
async def test_without_work_it_waits_for_what_it_can_run_as_long_as_the_store_says(
    bench, poll_after_ms, idle_ms, seconds
):
    bench.jobs.poll_after_ms, bench.jobs.idle_ms = poll_after_ms, idle_ms

    await bench.claimer.step()

    assert bench.engine.wakeup.waits == [(["queue:default"], seconds, ("work",))]


async def test_a_claim_asks_for_the_free_slots_and_known_types(bench):
    await bench.claimer.step()

    (request,) = bench.jobs.requests
    assert request.limit == 3
    assert request.types == ("work",)
    assert request.queues == (("default", 3),)
    assert len(request.nonce) == 16


async def test_it_asks_for_what_its_versions_take_once_it_has_a_slot(bench):
    await bench.claimer.step()
    bench.claimer.meet(3)
    await bench.claimer.step()
    bench.claimer.meet(0)
    await bench.claimer.step()

    asked = [request.requirements for request in bench.jobs.requests]
    assert asked == [("",), ("", "version:3"), ("",)]


async def test_suspects_are_asked_for_alone_among_what_its_versions_take():
    bench = Bench(requirements=("", "alone"))
    bench.claimer.meet(2)
    await bench.claimer.step()

    (request,) = bench.jobs.requests
    assert request.requirements == ("", "alone", "version:2", "version:2+alone")


async def test_a_claim_sent_ahead_is_made_anew_when_the_slot_has_changed():
    bench = Bench()
    bench.engine.capabilities.claims_ahead = True
    await bench.claimer.step()
    bench.claimer.meet(1)
    await bench.claimer.step()
    await bench.claimer.step()

    assert bench.jobs.requests[-1].requirements == ("", "version:1")


async def test_what_was_claimed_is_reported_before_it_is_started(bench):
    bench.jobs.claims = [make_claim(n) for n in range(3)]

    await bench.claimer.step()
    await until(lambda: len(bench.ended) == 3)

    kinds = [type(message) for message in bench.link.said]
    assert kinds.index(Claimed) < kinds.index(Started)
    (claimed,) = bench.link.of(Claimed)
    assert claimed.jobs == [(f"{n:026d}", 1, "work") for n in range(3)]
    assert claimed.nonce == bench.jobs.requests[0].nonce


async def test_a_claim_without_an_answer_is_repeated_under_its_nonce(bench):
    bench.jobs.failures = [StoreUnreachable("away", hint="")]

    with pytest.raises(StoreUnreachable):
        await bench.claimer.step()
    await bench.claimer.step()
    await bench.claimer.step()

    first, second, third = bench.jobs.requests
    assert first is second
    assert third.nonce != second.nonce


async def test_it_claims_ahead_at_most_what_ended_lately():
    clock = Clock()
    with runtime.install(clock):
        bench = Bench(slots=2)
        asked = []
        for seconds, ended in [(0.0, 0), (0.02, 10), (0.02, 30), (0.02, 30), (1.0, 130)]:
            clock.seconds += seconds
            bench.executor.shared.ended = ended
            await bench.claimer.step()
            asked.append(bench.jobs.requests[-1].limit)

    assert asked == [2, 12, 32, 27, 7]


async def test_while_enough_waits_nothing_is_claimed(bench):
    bench.executor.shared.waiting.extend(object() for _ in range(2))

    assert bench.claimer._next_request() is None


async def test_nothing_is_claimed_while_nobody_keeps_leases(bench):
    bench.kept = False
    step = asyncio.ensure_future(bench.claimer.step())
    await asyncio.sleep(0)
    bench.claimer.room_changed()
    await asyncio.sleep(0)
    assert not step.done()
    assert bench.jobs.requests == []

    bench.kept = True
    bench.claimer.room_changed()
    await step
    await bench.claimer.step()
    assert len(bench.jobs.requests) == 1


async def test_what_the_store_gave_too_late_is_given_back():
    bench = Bench(lease=2.0)
    bench.jobs.claims = [make_claim(0)]
    bench.claimer._next_request()
    bench.claimer._sent_at = runtime.boottime() - 1.5

    await bench.claimer.step()

    assert bench.ended == [(0, Released())]
    await bench.claimer.stop()


async def test_weights_share_the_room_between_queues():
    bench = Bench(slots=4, queues=QueueStride(("a", "b"), (3, 1)))

    await bench.claimer.step()

    assert dict(bench.jobs.requests[0].queues) == {"a": 3, "b": 1}
    await bench.claimer.stop()


# ── claims sent ahead ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ahead(bench):
    bench.engine.capabilities.claims_ahead = True
    return bench.engine.wakeup.ahead


async def test_a_store_that_cannot_is_sent_nothing_ahead(bench):
    await bench.claimer.step()
    assert bench.engine.wakeup.ahead == [None]


async def test_the_claim_after_a_wait_is_the_one_that_was_sent_ahead(bench, ahead):
    await bench.claimer.step()
    await bench.claimer.step()
    first, second = bench.jobs.requests
    assert ahead[0] == second
    assert first == second, "what got nothing may be made again"


async def test_after_a_claim_that_got_something_another_is_sent_ahead(bench, ahead):
    bench.jobs.claims = [make_claim(0)]
    await bench.claimer.step()
    (request,) = bench.jobs.requests
    assert ahead[0] is not None
    assert ahead[0].nonce != request.nonce


async def test_nothing_is_sent_ahead_that_could_be_old_when_it_is_made(ahead):
    short = Bench(lease=3.0)
    short.engine.capabilities.claims_ahead = True
    await short.claimer.step()
    assert short.engine.wakeup.ahead == [None]


async def test_a_claim_sent_ahead_is_withdrawn_when_it_stops(bench, ahead):
    waits = asyncio.Event()
    bench.engine.wakeup.meanwhile = waits.set
    bench.claimer.start()
    await waits.wait()
    await bench.claimer.stop()
    assert [request.limit for request in bench.jobs.requests] == [3, 0]
    assert bench.jobs.requests[1].nonce == ahead[0].nonce
    await bench.claimer.stop()
    assert len(bench.jobs.requests) == 2, "once"


async def test_a_claim_sent_ahead_is_withdrawn_when_it_stops_during_another(bench, ahead):
    await bench.claimer.step()
    bench.jobs.gate = asyncio.Event()
    bench.claimer.start()
    await until(lambda: len(bench.jobs.requests) == 2)
    stop = asyncio.ensure_future(bench.claimer.stop())
    await asyncio.sleep(0)
    bench.jobs.gate.set()
    await stop
    assert [request.limit for request in bench.jobs.requests] == [3, 3, 0]
    assert {request.nonce for request in bench.jobs.requests} == {ahead[0].nonce}


async def test_a_claim_sent_ahead_is_withdrawn_when_there_is_no_time_to_stop(bench, ahead):
    await bench.claimer.step()
    bench.jobs.gate = asyncio.Event()
    bench.claimer.start()
    await until(lambda: len(bench.jobs.requests) == 2)
    stop = asyncio.ensure_future(bench.claimer.stop())
    await asyncio.sleep(0)
    stop.cancel()
    await until(lambda: len(bench.jobs.requests) == 3)
    bench.jobs.gate.set()
    await asyncio.wait({stop})
    assert bench.jobs.requests[2].limit == 0
    assert bench.jobs.requests[2].nonce == ahead[0].nonce


async def test_nothing_is_waited_for_when_it_stops_while_it_withdraws(bench, ahead):
    await bench.claimer.step()
    bench.jobs.idle_ms = 9_000
    gate = asyncio.Event()

    async def claim(request):
        if request.limit == 0:
            bench.jobs.gate = gate
        return await taken(request)

    taken, bench.jobs.claim = bench.jobs.claim, claim
    bench.claimer.start()
    await until(lambda: len(bench.jobs.requests) == 3)
    stop = asyncio.ensure_future(bench.claimer.stop())
    await asyncio.sleep(0)
    gate.set()
    await stop
    assert len(bench.engine.wakeup.waits) == 1


async def test_a_store_that_is_away_does_not_hold_up_the_stop(bench, ahead, monkeypatch):
    await bench.claimer.step()
    bench.jobs.failures = [StoreUnreachable("away", hint="")]
    await bench.claimer.stop()
    assert bench.jobs.requests[-1].limit == 0

    monkeypatch.setattr("lamplighter.worker.claimer.WITHDRAW", 0.01)
    bench.jobs.gate = asyncio.Event()
    async with asyncio.timeout(1.0):
        await bench.claimer.stop()
    assert [request.limit for request in bench.jobs.requests] == [3, 0, 0]
    bench.jobs.gate.set()


async def test_an_idle_one_claims_nothing_while_nobody_keeps_leases(bench, ahead):
    await bench.claimer.step()
    bench.kept = False
    step = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: bench.claimer._room_free is not None)
    assert not step.done()
    assert [request.limit for request in bench.jobs.requests] == [3, 0]
    assert bench.jobs.requests[1].nonce == ahead[0].nonce

    bench.kept = True
    bench.claimer.room_changed()
    await step
    await bench.claimer.step()
    assert [request.limit for request in bench.jobs.requests] == [3, 0, 3]
    assert bench.jobs.requests[2].nonce != ahead[0].nonce


async def test_a_claim_without_an_answer_is_withdrawn_while_nobody_keeps_leases(bench):
    bench.jobs.failures = [StoreUnreachable("away", hint=""), StoreUnreachable("away", hint="")]
    with pytest.raises(StoreUnreachable):
        await bench.claimer.step()
    bench.kept = False
    with pytest.raises(StoreUnreachable):
        await bench.claimer.step()
    step = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: bench.claimer._room_free is not None)
    step.cancel()
    assert [request.limit for request in bench.jobs.requests] == [3, 0, 0]
    assert len({request.nonce for request in bench.jobs.requests}) == 1


def forsake(bench: Bench) -> None:
    bench.kept = False


def crowd(bench: Bench) -> None:
    bench.executor.shared.waiting.extend(object() for _ in range(2))


@pytest.mark.parametrize("happens", [forsake, crowd])
async def test_what_got_nothing_is_sent_ahead_again_only_if_it_may_get_something(
    bench, ahead, happens
):
    await bench.claimer.step()
    bench.jobs.gate = asyncio.Event()
    step = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: len(bench.jobs.requests) == 2)
    happens(bench)
    bench.jobs.gate.set()
    await step
    assert ahead[1:] == [None]
    assert [request.limit for request in bench.jobs.requests] == [3, 3, 0]
    assert {request.nonce for request in bench.jobs.requests} == {ahead[0].nonce}


@pytest.mark.parametrize("happens", [forsake, lambda bench: bench.claimer._stopped.set()])
async def test_what_nobody_would_run_or_keep_is_given_back(bench, happens):
    bench.jobs.claims = [make_claim(0)]
    bench.jobs.gate = asyncio.Event()
    step = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: bench.jobs.requests)
    happens(bench)
    bench.jobs.gate.set()
    await step
    assert bench.ended == [(0, Released())]
    assert not bench.link.of(Started)


async def test_a_claim_sent_ahead_is_withdrawn_before_one_of_another_nonce(bench, ahead):
    await bench.claimer.step()
    (first,) = ahead
    bench.jobs.poll_after_ms = 0
    await bench.claimer.step()
    bench.jobs.claims = [make_claim(n) for n in range(3)]
    await bench.claimer.step()
    asked = [(request.nonce == first.nonce, request.limit) for request in bench.jobs.requests]
    assert asked == [(True, 3), (True, 3), (True, 0), (False, 3)]
    assert ahead == [first]


async def test_what_another_claim_got_says_nothing_of_the_one_sent_ahead(bench, ahead):
    await bench.claimer.step()
    (first,) = ahead
    bench.jobs.claims = [make_claim(0)]
    await bench.claimer._claim(bench.claimer._next_request())
    await bench.claimer.stop()
    assert bench.jobs.requests[-1].limit == 0
    assert bench.jobs.requests[-1].nonce == first.nonce


async def test_a_claim_sent_ahead_is_withdrawn_when_other_types_are_to_be_run(bench, ahead):
    def isolated() -> None:
        bench.types = ("other",)

    bench.engine.wakeup.meanwhile = isolated
    await bench.claimer.step()
    assert [request.limit for request in bench.jobs.requests] == [3, 0]
    await bench.claimer.step()
    assert bench.jobs.requests[2].types == ("other",)


async def test_a_claim_sent_ahead_is_withdrawn_before_a_wait_without_it(bench, ahead):
    await bench.claimer.step()
    (first,) = ahead
    bench.jobs.idle_ms = 9_000
    await bench.claimer.step()
    assert ahead == [first, None], "a longer wait would make it old"
    assert [request.limit for request in bench.jobs.requests] == [3, 3, 0]
    assert {request.nonce for request in bench.jobs.requests} == {first.nonce}
    await bench.claimer.step()
    assert len(bench.jobs.requests) == 4, "once"
    assert bench.jobs.requests[3].nonce != first.nonce


async def test_what_it_took_of_types_that_are_others_by_now_is_given_back(bench):
    bench.jobs.claims = [make_claim(0)]
    bench.jobs.gate = asyncio.Event()
    step = asyncio.ensure_future(bench.claimer.step())
    await asyncio.sleep(0)
    bench.types = ("other",)
    bench.jobs.gate.set()
    await step
    assert bench.ended == [(0, Released())]


async def test_the_lease_counts_from_when_the_claim_was_sent_ahead(bench):
    bench.jobs.claims = [make_claim(0)]
    bench.jobs.sent_at = runtime.boottime() - 16.0
    await bench.claimer.step()
    assert bench.ended == [(0, Released())], "half of its lease is over"


# ── very many schedules are being fired ──────────────────────────────────────────────────────


async def test_it_makes_way_by_small_portions_with_a_pause_after_each():
    clock = Clock()
    with runtime.install(clock):
        bench = Bench(slots=3 * PORTION)
        bench.jobs.claims = [make_claim(number) for number in range(3 * PORTION)]
        bench.way.make(1.0)

        pauses = [await bench.claimer.step(), await bench.claimer.step()]
        clock.seconds += 1.0
        await bench.claimer.step()

    assert [request.limit for request in bench.jobs.requests] == [PORTION, PORTION, PORTION]
    assert pauses == [PAUSE, PAUSE]
    bench.executor.close()


async def test_nobody_makes_way_any_longer_than_it_was_told():
    clock = Clock()
    with runtime.install(clock):
        bench = Bench(slots=3 * PORTION)
        bench.way.make(1.0)
        clock.seconds += 1.0
        await bench.claimer.step()
        bench.way.make(1.0)
        bench.way.make(0.0)
        await bench.claimer.step()

    assert [request.limit for request in bench.jobs.requests] == [3 * PORTION, 3 * PORTION]


async def test_the_most_urgent_jobs_make_no_way():
    with runtime.install(Clock()):
        bench = Bench(slots=3 * PORTION)
        urgent = make_claim(level=Level.CRITICAL)
        bench.jobs.claims = [urgent] * PORTION
        bench.way.make(1.0)

        assert await bench.claimer.step() == 0.0

        bench.jobs.claims = [make_claim(1), urgent]
        assert await bench.claimer.step() == 0.0

        bench.jobs.claims = [make_claim(2, level=Level.HIGH)]
        assert await bench.claimer.step() == PAUSE


# ── what this process has put back ───────────────────────────────────────────────────────────


class Silent:
    """A wakeup that never has news, and ends only with its time."""

    def __init__(self) -> None:
        self.waits = 0

    async def wait(self, topics, timeout: float, *, types=None, ahead=None) -> bool:
        self.waits += 1
        await asyncio.sleep(timeout)
        return False


@pytest.fixture
async def idle():
    engine = make_engine()
    engine.wakeup = Silent()
    bench = Bench(engine=engine, poll=60.0)
    bench.claimer.start()
    await until(lambda: engine.wakeup.waits == 1)
    yield bench
    await bench.claimer.stop()


async def test_an_idle_claimer_asks_when_something_is_due_that_was_put_back(idle):
    idle.claimer.due_in(0.02)
    await until(lambda: idle.engine.wakeup.waits == 2)

    assert len(idle.jobs.requests) == 2


async def test_only_the_first_that_falls_due_is_waited_for(idle):
    idle.claimer.due_in(30.0)
    idle.claimer.due_in(0.02)
    idle.claimer.due_in(0.03)
    await until(lambda: idle.engine.wakeup.waits == 2)
    await asyncio.sleep(0.05)

    assert len(idle.jobs.requests) == 2


async def test_what_falls_due_while_a_claim_is_under_way_is_asked_for_at_once():
    engine = make_engine()
    engine.wakeup = Silent()
    bench = Bench(engine=engine, poll=60.0)
    bench.jobs.gate = asyncio.Event()
    bench.claimer.start()
    await until(lambda: bench.jobs.requests)
    bench.claimer.due_in(0.0)
    await asyncio.sleep(0.01)

    bench.jobs.gate.set()
    await until(lambda: engine.wakeup.waits == 1)

    assert len(bench.jobs.requests) == 2
    await bench.claimer.stop()


async def test_a_claimer_that_is_stopped_does_not_wait_for_what_falls_due(idle):
    idle.claimer.due_in(0.02)

    await idle.claimer.stop()
    await asyncio.sleep(0.05)

    assert len(idle.jobs.requests) == 1
