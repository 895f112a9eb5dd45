"""Writing what runs came to."""

import asyncio
import itertools
import time

import pytest

from lamplighter.config import Settings
from lamplighter.model.errors import StoreBusy
from lamplighter.model.job import ErrorInfo, JobState
from lamplighter.model.outcome import Failed, Released, Snoozed, Succeeded
from lamplighter.model.retry import Retry
from lamplighter.observability import events
from lamplighter.port.store import FINISHED_TOPIC, queue_topic
from lamplighter.port.values import SettleAnswer
from lamplighter.worker.settler import Settler
from tests.unit.worker.fakes import make_engine, make_run, until

ERROR = ErrorInfo(type="E", message="m")


async def work():
    pass


class Bench:
    def __init__(self, **settings) -> None:
        self.engine = make_engine()
        self.jobs = self.engine.jobs
        self.settled: list[list[int]] = []
        self.ended: list[list[int]] = []
        self.forsaken: list[list[int]] = []
        self.settler = Settler(
            self.engine,
            Settings(**settings),
            on_settled=self.settled.append,
            on_ended=self.ended.append,
            on_forsaken=self.forsaken.append,
            last_words=lambda run: run.notes.take(last=True),
        )
        self.settler.start()


@pytest.fixture
async def bench():
    bench = Bench()
    yield bench
    await bench.settler.stop()


def busy() -> StoreBusy:
    return StoreBusy("busy", hint="")


async def test_what_ends_while_a_batch_is_written_forms_the_next(bench):
    bench.jobs.gate = asyncio.Event()
    bench.settler.add(make_run(work, 0), Succeeded())
    await until(lambda: bench.settler._batch)
    for number in range(1, 4):
        bench.settler.add(make_run(work, number), Succeeded())

    bench.jobs.gate.set()
    await bench.settler.emptied()

    assert [len(batch) for batch in bench.jobs.settled] == [1, 3]
    assert bench.settled == [[0], [1, 2, 3]]
    assert FINISHED_TOPIC in bench.engine.wakeup.notified


async def test_a_failed_write_is_repeated_with_the_same_settlements(bench):
    bench.jobs.failures = [busy(), busy()]

    bench.settler.add(make_run(work, 0), Succeeded())
    await bench.settler.emptied()

    assert bench.jobs.outcomes() == {"0" * 26: "succeeded"}
    assert bench.ended == [[0]]


async def test_a_claim_lost_while_the_store_is_away_is_not_written(bench):
    bench.jobs.gate = asyncio.Event()
    bench.jobs.failures = [busy()]
    bench.settler.add(make_run(work, 0), Succeeded())
    bench.settler.add(make_run(work, 1), Succeeded())
    await until(lambda: bench.settler._batch)

    bench.settler.lose([0])
    bench.settler.add(make_run(work, 2), Succeeded())
    bench.settler.lose([2])
    bench.jobs.gate.set()
    await bench.settler.emptied()

    assert list(bench.jobs.outcomes()) == [f"{1:026d}"]
    assert bench.settled == [[1]]
    assert bench.forsaken == [[2], [0]]


async def test_one_that_cannot_be_written_does_not_hold_up_the_others(bench):
    bench.jobs.gate = asyncio.Event()
    bench.jobs.failures = [RuntimeError("batch"), RuntimeError("first")]
    for number in range(3):
        bench.settler.add(make_run(work, number), Succeeded())
    bench.jobs.gate.set()
    await bench.settler.emptied()

    assert sorted(bench.jobs.outcomes()) == [f"{1:026d}", f"{2:026d}"]
    assert bench.settled == [[1, 2]]
    assert bench.forsaken == [[0]]


async def test_a_lost_lease_is_told(bench):
    told = []
    stop = events.listen(lambda name, fields: told.append((name, fields)))
    bench.jobs.answers = {"0" * 26: SettleAnswer.LOST}

    bench.settler.add(make_run(work, 0), Succeeded())
    await bench.settler.emptied()
    stop()

    assert (events.LEASE_LOST, {"job_id": "0" * 26, "verb": "settle"}) in told
    assert bench.engine.wakeup.notified == []


async def test_a_job_given_back_wakes_its_queue(bench):
    bench.settler.add(make_run(work, 0), Released())
    await bench.settler.emptied()

    assert bench.engine.wakeup.notified == [queue_topic("default")]


async def test_a_retry_function_that_raises_gives_the_default_policy(bench):
    def broken(attempt: int) -> float:
        raise RuntimeError

    bench.settler.add(make_run(work, 0, retry=Retry(function=broken)), Failed(ERROR))
    await bench.settler.emptied()

    assert bench.jobs.states() == {"0" * 26: JobState.WAITING}


class Unspeakable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


@pytest.mark.parametrize("error", [Unspeakable(), SystemExit(3)])
async def test_a_retry_function_may_raise_whatever_it_likes(bench, error):
    told = []
    stop = events.listen(lambda name, fields: told.append((name, fields.get("service"))))

    def broken(attempt: int) -> float:
        raise error

    bench.settler.add(make_run(work, 0, retry=Retry(function=broken)), Failed(ERROR))
    await bench.settler.emptied()
    stop()

    assert bench.jobs.states() == {"0" * 26: JobState.WAITING}
    assert (events.SERVICE_ERROR, "retry") in told


async def test_speed_divides_the_pause_before_a_retry():
    bench = Bench(speed=100.0)
    bench.settler.add(make_run(work, 0, retry=Retry(fixed=50)), Failed(ERROR))
    await bench.settler.emptied()
    await bench.settler.stop()

    assert bench.jobs.settled[0][0].next.delay_ms == 500


async def test_an_end_close_to_the_hard_end_is_reported_at_once(bench):
    bench.jobs.gate = asyncio.Event()
    run = make_run(work, 0)
    run.hard_end = 0.5

    bench.settler.add(run, Succeeded())

    assert bench.ended == [[0]]
    bench.jobs.gate.set()


async def test_handlers_that_ended_before_their_claims_were_lost_are_told_of(bench):
    bench.jobs.gate = asyncio.Event()
    bench.settler.add(make_run(work, 0), Succeeded())
    await until(lambda: bench.settler._batch)
    bench.settler.add(make_run(work, 1), Succeeded())

    bench.settler.lose([1, 7])
    bench.jobs.gate.set()
    await bench.settler.emptied()

    assert bench.forsaken == [[1]]
    assert bench.settled == [[0]]


async def test_a_locked_job_is_settled_later_and_holds_up_no_other(bench):
    bench.jobs.locked = {f"{1:026d}"}
    for number in range(3):
        bench.settler.add(make_run(work, number), Succeeded())
    await until(lambda: bench.settled)
    bench.settler.add(make_run(work, 3), Succeeded())
    await until(lambda: len(bench.settled) == 2)
    assert bench.settled == [[0, 2], [3]]

    bench.jobs.locked.clear()
    await bench.settler.emptied()

    assert bench.settled == [[0, 2], [3], [1]]
    assert bench.forsaken == []


async def test_a_locked_job_is_asked_about_less_and_less_often_and_alone(bench):
    asked: list[tuple[float, int]] = []
    settle = bench.jobs.settle

    async def watched(settlements):
        if any(one.id in bench.jobs.locked for one in settlements):
            asked.append((time.monotonic(), len(settlements)))
        return await settle(settlements)

    bench.jobs.settle = watched
    bench.jobs.locked = {f"{0:026d}"}
    bench.settler.add(make_run(work, 0), Succeeded())
    for number in itertools.count(1):
        if len(asked) == 4:
            break
        bench.settler.add(make_run(work, number), Succeeded())
        await asyncio.sleep(0.01)
    bench.jobs.locked.clear()
    await bench.settler.emptied()

    times, sizes = zip(*asked, strict=True)
    assert sizes[1:] == (1, 1, 1)
    pauses = [late - early for early, late in itertools.pairwise(times)]
    assert all(pause > 0.9 * least for pause, least in zip(pauses, (0.05, 0.1, 0.2), strict=True))


async def test_a_claim_lost_while_its_job_is_locked_is_not_written(bench):
    bench.jobs.locked = {f"{0:026d}"}
    bench.settler.add(make_run(work, 0), Succeeded())
    bench.settler.add(make_run(work, 1), Succeeded())
    await until(lambda: bench.settled)

    bench.settler.lose([0])
    bench.jobs.locked.clear()
    await bench.settler.emptied()

    assert list(bench.jobs.outcomes()) == [f"{1:026d}"]
    assert bench.forsaken == [[0]]


async def test_a_claim_lost_while_the_store_says_that_its_job_is_locked_is_not_written(bench):
    bench.jobs.gate = asyncio.Event()
    bench.jobs.locked = {f"{0:026d}"}
    bench.settler.add(make_run(work, 0), Succeeded())
    await until(lambda: bench.settler._batch)
    bench.settler.lose([0])

    bench.jobs.gate.set()
    await bench.settler.emptied()

    assert bench.jobs.settled == []
    assert bench.forsaken == [[0]]


async def test_a_handler_whose_job_is_locked_is_told_to_have_ended(bench):
    bench.jobs.locked = {f"{0:026d}"}
    bench.settler.add(make_run(work, 0), Succeeded())
    bench.settler.add(make_run(work, 1), Succeeded())
    await until(lambda: bench.settled)

    bench.settler.report_slow()

    assert bench.ended == [[0]]
    bench.jobs.locked.clear()


async def test_it_tells_when_the_first_of_those_falls_due_that_were_put_back(bench):
    told: list[float] = []
    bench.settler.on_due = told.append
    bench.jobs.gate = asyncio.Event()
    bench.settler.add(make_run(work, 0), Succeeded())
    await until(lambda: bench.settler._batch)
    bench.settler.add(make_run(work, 1), Snoozed(5.0))
    bench.settler.add(make_run(work, 2), Snoozed(0.1))
    bench.settler.add(make_run(work, 3), Released())
    bench.settler.add(make_run(work, 4), Succeeded())

    bench.jobs.gate.set()
    await bench.settler.emptied()
    await until(lambda: told)

    assert told == [0.1]
