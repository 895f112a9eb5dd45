"""Threads for handlers, also when the system gives none."""

import asyncio
import threading

import pytest

from lamplighter.model.outcome import Released, Succeeded
from lamplighter.observability import events
from lamplighter.worker import shared
from lamplighter.worker.run import Stop
from lamplighter.worker.threads import Threads
from tests.unit.worker.fakes import make_run, until
from tests.unit.worker.test_executor import Bench


@pytest.fixture
def allowed(monkeypatch):
    """Let only so many threads start, as a system does that has no room for more."""
    left = {"threads": 0}
    start = threading.Thread.start

    def start_if_allowed(thread: threading.Thread) -> None:
        if thread.name.startswith("job-"):
            if not left["threads"]:
                raise RuntimeError("can't start new thread")
            left["threads"] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_if_allowed)

    def allow(count: int) -> None:
        left["threads"] = count

    return allow


def work():
    return 1


async def test_what_finds_no_thread_waits_for_one_there_is(allowed):
    allowed(2)
    bench = Bench(slots=8)

    bench.executor.offer([make_run(work, n) for n in range(8)])
    await until(lambda: len(bench.outcomes) == 8)

    assert set(bench.outcomes.values()) == {Succeeded(b"1")}


async def test_without_any_thread_jobs_are_given_back_unstarted_and_it_is_told(
    allowed, monkeypatch
):
    monkeypatch.setattr(shared, "NO_THREAD_PAUSE", 0.01)
    told = []
    stop = events.listen(lambda name, fields: told.append((name, fields.get("service"))))
    bench = Bench(slots=3)

    bench.executor.offer([make_run(work, n) for n in range(3)])
    assert len(bench.executor.running) == 3
    await until(lambda: len(bench.outcomes) == 3)
    stop()

    assert set(bench.outcomes.values()) == {Released(started=False)}
    assert told == [(events.SERVICE_ERROR, "threads")]
    assert bench.executor.running == {}
    allowed(1)
    assert await bench.outcome(make_run(work, 9)) == Succeeded(b"1")


async def test_what_was_lost_while_it_found_no_thread_is_not_written(allowed, monkeypatch):
    monkeypatch.setattr(shared, "NO_THREAD_PAUSE", 0.01)
    bench = Bench()
    bench.executor.offer([make_run(work)])

    bench.executor.stop([0], Stop.LOST)
    await until(lambda: bench.outcomes)

    assert bench.outcomes == {0: None}


async def test_a_thread_is_tried_again_for_the_next_task(allowed):
    done = []
    threads = Threads(2, lambda task: task, lambda task, _: done.append(task))

    assert not threads.submit(1)
    allowed(2)
    assert threads.submit(2)
    await until(lambda: done == [2])
    await asyncio.sleep(0)
    assert threads.submit(3)
    await until(lambda: done == [2, 3])
