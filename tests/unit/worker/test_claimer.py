"""Taking from the store what there is room for."""

import asyncio

import pytest

from lamplighter import runtime
from lamplighter.config import Settings
from lamplighter.model.errors import StoreUnreachable
from lamplighter.model.job import Level
from lamplighter.model.outcome import Released
from lamplighter.model.stride import QueueStride
from lamplighter.port.patience import ASK_AGAIN
from lamplighter.port.store import JobStore
from lamplighter.worker.bench import Numbers
from lamplighter.worker.claimer import Claimer
from lamplighter.worker.executor import Executor
from lamplighter.worker.link import Claimed, Started
from lamplighter.worker.pulse import Pulse
from lamplighter.worker.rush import PAUSE, PORTION, Way
from tests.unit.worker.fakes import (
    Clock,
    FakeJobs,
    FakeLink,
    make_claim,
    make_engine,
    registry_of,
    until,
)


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


async def test_without_work_its_claim_waits_for_a_poll(bench):
    await bench.claimer.step()

    assert bench.jobs.patience.seconds == 1.0


async def test_all_its_claims_wait_with_one_patience(bench):
    await bench.claimer.step()
    first = bench.jobs.patience
    bench.jobs.claims = [make_claim(0)]
    await bench.claimer.step()

    assert bench.jobs.patience is first


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
    bench.claimer._asked_at = runtime.boottime() - 1.5

    await bench.claimer.step()

    assert bench.ended == [(0, Released())]
    await bench.claimer.stop()


async def test_weights_share_the_room_between_queues():
    bench = Bench(slots=4, queues=QueueStride(("a", "b"), (3, 1)))

    await bench.claimer.step()

    assert dict(bench.jobs.requests[0].queues) == {"a": 3, "b": 1}
    await bench.claimer.stop()


# ── what is given up ─────────────────────────────────────────────────────────────────────────


async def test_what_got_nothing_is_not_asked_again_under_its_nonce(bench):
    await bench.claimer.step()
    await bench.claimer.step()
    first, second = bench.jobs.requests
    assert first.nonce != second.nonce


async def test_a_claim_under_way_is_hurried_when_it_stops(bench):
    bench.jobs.gate = asyncio.Event()
    bench.claimer.start()
    await until(lambda: bench.jobs.requests)
    stop = asyncio.ensure_future(bench.claimer.stop())
    await asyncio.sleep(0)
    assert bench.jobs.patience.hurried
    bench.jobs.gate.set()
    await stop
    assert len(bench.jobs.requests) == 1
    await bench.claimer.stop()
    assert len(bench.jobs.requests) == 1, "nothing is left to be given up"


async def test_a_claim_under_way_is_given_up_when_there_is_no_time_to_stop(bench):
    bench.jobs.gate = asyncio.Event()
    bench.claimer.start()
    await until(lambda: bench.jobs.requests)
    stop = asyncio.ensure_future(bench.claimer.stop())
    await asyncio.sleep(0)
    stop.cancel()
    await asyncio.wait({stop})
    assert bench.claimer._task.cancelled()
    assert len(bench.jobs.requests) == 1


async def test_a_store_that_is_away_does_not_hold_up_the_stop(bench):
    bench.jobs.failures = [StoreUnreachable("away", hint="")]
    bench.claimer.start()
    await until(lambda: bench.jobs.requests)
    async with asyncio.timeout(1.0):
        await bench.claimer.stop()
    assert len(bench.jobs.requests) == 1


async def test_an_idle_one_claims_nothing_while_nobody_keeps_leases(bench):
    await bench.claimer.step()
    bench.kept = False
    step = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: bench.claimer._room_free is not None)
    assert not step.done()
    assert len(bench.jobs.requests) == 1

    bench.kept = True
    bench.claimer.room_changed()
    await step
    await bench.claimer.step()
    assert [request.limit for request in bench.jobs.requests] == [3, 3]


async def test_a_claim_without_an_answer_takes_nothing_more_while_nobody_keeps_leases(bench):
    bench.jobs.failures = [StoreUnreachable("away", hint=""), StoreUnreachable("away", hint="")]
    with pytest.raises(StoreUnreachable):
        await bench.claimer.step()
    bench.kept = False
    with pytest.raises(StoreUnreachable):
        await bench.claimer.step()
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
async def test_after_an_answer_it_asks_again_only_if_it_may_get_something(bench, happens):
    bench.jobs.gate = asyncio.Event()
    step = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: bench.jobs.requests)
    happens(bench)
    bench.jobs.gate.set()
    await step
    following = asyncio.ensure_future(bench.claimer.step())
    await until(lambda: bench.claimer._room_free is not None)
    following.cancel()
    assert len(bench.jobs.requests) == 1


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


async def test_when_other_types_are_to_be_run_the_next_claim_asks_for_these(bench):
    await bench.claimer.step()
    bench.types = ("other",)
    await bench.claimer.step()
    assert [request.types for request in bench.jobs.requests] == [("work",), ("other",)]


async def test_what_it_took_of_types_that_are_others_by_now_is_given_back(bench):
    bench.jobs.claims = [make_claim(0)]
    bench.jobs.gate = asyncio.Event()
    step = asyncio.ensure_future(bench.claimer.step())
    await asyncio.sleep(0)
    bench.types = ("other",)
    bench.jobs.gate.set()
    await step
    assert bench.ended == [(0, Released())]


async def test_the_lease_counts_from_when_the_claim_began_to_wait():
    clock = Clock()
    with runtime.install(clock):
        bench = Bench(lease=30.0)
        bench.jobs.claims = [make_claim(0)]
        bench.jobs.gate = asyncio.Event()
        step = asyncio.ensure_future(bench.claimer.step())
        await until(lambda: bench.jobs.requests)
        clock.seconds += 16.0
        bench.jobs.gate.set()
        await step
        assert bench.ended == [(0, Released())], "half of its lease is over"
        (claimed,) = bench.link.of(Claimed)
        assert claimed.asked_at == clock.seconds - 16.0


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


class Silent(FakeJobs):
    """A store that has nothing, and lets whoever was told so wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0
        self._claims = JobStore(self._call, self._wait)

    async def claim(self, request, patience=None):
        return await self._claims.claim(request, patience)

    async def _call(self, verb: str, request):
        return await super().claim(request)

    async def _wait(self, request, patience):
        self.waits += 1
        await patience.during(asyncio.sleep(patience.left(request)))
        return ASK_AGAIN


@pytest.fixture
async def idle():
    engine = make_engine()
    engine.jobs = Silent()
    bench = Bench(engine=engine, poll=60.0)
    bench.claimer.start()
    await until(lambda: bench.jobs.waits == 1)
    yield bench
    await bench.claimer.stop()


async def test_an_idle_claimer_asks_when_something_is_due_that_was_put_back(idle):
    idle.claimer.due_in(0.02)
    await until(lambda: idle.jobs.waits == 2)

    assert len(idle.jobs.requests) == 2


async def test_only_the_first_that_falls_due_is_waited_for(idle):
    idle.claimer.due_in(30.0)
    idle.claimer.due_in(0.02)
    idle.claimer.due_in(0.03)
    await until(lambda: idle.jobs.waits == 2)
    await asyncio.sleep(0.05)

    assert len(idle.jobs.requests) == 2


async def test_what_falls_due_while_a_claim_is_under_way_is_asked_for_at_once():
    engine = make_engine()
    engine.jobs = Silent()
    bench = Bench(engine=engine, poll=60.0)
    bench.jobs.gate = asyncio.Event()
    bench.claimer.start()
    await until(lambda: bench.jobs.requests)
    bench.claimer.due_in(0.0)
    await asyncio.sleep(0.01)

    bench.jobs.gate.set()
    await until(lambda: bench.jobs.waits == 1)

    assert len(bench.jobs.requests) == 2
    await bench.claimer.stop()


async def test_a_claimer_that_is_stopped_does_not_wait_for_what_falls_due(idle):
    idle.claimer.due_in(0.02)

    await idle.claimer.stop()
    await asyncio.sleep(0.05)

    assert len(idle.jobs.requests) == 1


async def test_after_a_poll_it_asks_again():
    engine = make_engine()
    engine.jobs = Silent()
    bench = Bench(engine=engine, poll=0.02)
    bench.claimer.start()
    await until(lambda: len(bench.jobs.requests) == 3)

    assert bench.jobs.waits == 2
    await bench.claimer.stop()
