"""A handler sees why it is stopped."""

import asyncio

import pytest

from lamplighter import CancelRequested, TimedOut
from lamplighter.worker.driving import driven
from lamplighter.worker.run import Stop
from tests.unit.worker.fakes import make_run, turns


async def work():
    pass


class Driven:
    """A handler at work in a task."""

    def __init__(self, handler) -> None:
        self.run = make_run(work)
        self.task = asyncio.ensure_future(self._await(handler))

    async def _await(self, handler):
        return await driven(self.run, handler)

    async def stopped(self, why: Stop):
        await turns()
        self.run.stop = why
        self.task.cancel()
        return await self.task


async def test_results_and_errors_pass_through():
    async def fails():
        await asyncio.sleep(0)
        raise ValueError("x")

    assert await driven(make_run(work), asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="x"):
        await driven(make_run(work), fails())


async def test_the_end_of_its_time_is_told_where_it_waits():
    seen = []

    async def handler():
        try:
            await asyncio.sleep(60)
        except TimedOut as error:
            seen.append(error)
            await asyncio.sleep(0)
            return "saved"

    assert await Driven(handler()).stopped(Stop.TIMEOUT) == "saved"
    assert isinstance(seen[0], CancelRequested)
    assert isinstance(seen[0], asyncio.CancelledError)


@pytest.mark.parametrize("why", [Stop.CANCEL, Stop.DRAIN, Stop.LOST])
async def test_other_reasons_are_plain_cancellations(why):
    async def handler():
        await asyncio.sleep(60)

    with pytest.raises(asyncio.CancelledError) as caught:
        await Driven(handler()).stopped(why)

    assert not isinstance(caught.value, TimedOut)


async def test_a_timeout_of_its_own_still_works_and_a_group_is_cancelled():
    async def own():
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    ended = []

    async def member():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def group():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(member())

    with pytest.raises(TimeoutError):
        await driven(make_run(work), own())
    with pytest.raises(TimedOut):
        await Driven(group()).stopped(Stop.TIMEOUT)
    assert ended == [True]


async def test_only_the_first_cancellation_is_renamed():
    seen = []

    async def handler():
        for _ in range(2):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                seen.append(type(error))

    driven = Driven(handler())
    await turns()
    driven.run.stop = Stop.TIMEOUT
    driven.task.cancel()
    await turns()
    driven.task.cancel()
    await driven.task

    assert seen == [TimedOut, asyncio.CancelledError]
