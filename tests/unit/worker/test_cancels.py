"""A child listens for cancels only while a handler runs, and asks seldom when they are others'."""

import asyncio
from types import SimpleNamespace

import pytest

from lamplighter import runtime
from lamplighter.port.store import CANCEL_TOPIC
from lamplighter.worker.cancels import GAPS, LISTEN, CancelListener
from tests.unit.worker.fakes import Clock, make_engine


@pytest.fixture
def clock():
    clock = Clock()
    with runtime.install(clock):
        yield clock


@pytest.fixture
def engine():
    return make_engine()


@pytest.fixture
def asked():
    return []


@pytest.fixture
async def executor():
    return SimpleNamespace(running={}, begun=asyncio.Event())


@pytest.fixture
async def listener(clock, engine, executor, asked):
    return CancelListener(engine, executor, lambda: asked.append(runtime.boottime()))


def run(executor, *, started_at: float) -> None:
    executor.running[1] = SimpleNamespace(started_at=started_at)
    executor.begun.set()


def tell(engine, *answers: bool) -> None:
    left = list(answers)

    async def wait(topics, timeout, **_) -> bool:
        engine.wakeup.waits.append((list(topics), timeout))
        return timeout > 0 and bool(left) and left.pop(0)

    engine.wakeup.wait = wait


async def test_nothing_is_waited_for_while_nothing_runs(engine, executor, listener, asked):
    step = asyncio.ensure_future(listener.step())
    for _ in range(20):
        await asyncio.sleep(0)
    assert (engine.wakeup.waits, asked, step.done()) == ([], [], False)

    run(executor, started_at=runtime.boottime())
    await step
    assert engine.wakeup.waits


async def test_handlers_that_end_at_once_are_not_listened_for(engine, clock, executor, listener):
    run(executor, started_at=clock.seconds + 0.05)

    assert await listener.step() == 0.0
    assert engine.wakeup.waits == []


async def test_what_came_before_it_listened_is_asked_for_once(
    engine, clock, executor, listener, asked
):
    run(executor, started_at=clock.seconds)
    tell(engine)

    await listener.step()
    await listener.step()

    assert engine.wakeup.waits == [([CANCEL_TOPIC], 0), *[([CANCEL_TOPIC], LISTEN)] * 2]
    assert len(asked) == 1


async def test_the_gap_grows_while_the_cancels_are_others(engine, clock, executor, listener, asked):
    run(executor, started_at=clock.seconds)
    tell(engine, *[True] * 10, False, True)

    gaps = [await listener.step() for _ in range(10)]

    assert gaps == sorted(gaps)
    assert gaps[-1] == GAPS.longest
    assert len(asked) == 11
    await listener.step()  # silence
    assert await listener.step() == 2 * GAPS.first


async def test_after_a_cancel_of_our_own_the_next_is_asked_for_soon(
    engine, clock, executor, listener
):
    run(executor, started_at=clock.seconds)
    tell(engine, *[True] * 8)
    for _ in range(6):
        await listener.step()
    listener.found()

    assert await listener.step() == GAPS.first


async def test_it_ends_in_the_midst_of_a_wait(executor, listener):
    listener.start()
    await asyncio.sleep(0)

    async with asyncio.timeout(1):
        await listener.stop()
