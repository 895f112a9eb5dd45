"""Deadlines of requests."""

import asyncio

import pytest

from lamplighter.server.deadlines import Deadlines


async def test_what_takes_too_long_is_ended():
    deadlines = Deadlines(0.01)
    with pytest.raises(TimeoutError), deadlines():
        await asyncio.Event().wait()
    assert asyncio.current_task().cancelling() == 0
    assert not deadlines.running


async def test_what_ends_in_time_is_left_alone():
    deadlines = Deadlines(0.01)
    with deadlines():
        await asyncio.sleep(0)
    await asyncio.sleep(0.03)
    assert not deadlines.running


async def test_each_has_its_own_time():
    deadlines = Deadlines(0.05)
    ended: list[str] = []

    async def work(name: str, pause: float) -> None:
        await asyncio.sleep(pause)
        try:
            with deadlines():
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(name)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(work("second", 0.03))
        group.create_task(work("first", 0))
    assert ended == ["first", "second"]


async def test_a_cancelled_task_stays_cancelled():
    deadlines = Deadlines(5)
    begun = asyncio.Event()

    async def work() -> None:
        with deadlines():
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not deadlines.running


async def test_an_inner_deadline_ends_only_its_own_block():
    outer, inner = Deadlines(5), Deadlines(0.01)
    with outer():
        with pytest.raises(TimeoutError), inner():
            await asyncio.Event().wait()
        await asyncio.sleep(0)
    assert not outer.running
    assert not inner.running
