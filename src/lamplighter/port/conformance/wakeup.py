"""Wakeup: hints that may be lost but are not made up for by sleeping."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lamplighter.port.conformance.builders import handed_out, new_job, submit
from lamplighter.port.store import FINISHED_TOPIC, queue_topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.port.store import Engine

SOON = 0.01
LONG = 20.0
"""Far more than a wake-up takes; a test that waits this long has failed."""


async def test_a_wait_without_news_ends_with_its_time(engine: Engine) -> None:
    topic = queue_topic("quiet")
    await engine.wakeup.wait([topic], SOON)

    assert not await engine.wakeup.wait([topic], SOON)


async def test_news_between_two_waits_is_not_missed(engine: Engine) -> None:
    topic = queue_topic("default")
    await engine.wakeup.wait([topic], SOON)

    await engine.wakeup.notify(topic)

    assert await engine.wakeup.wait([topic], LONG)


async def test_news_of_jobs_between_two_waits_is_not_missed_where_nobody_else_waits(
    engine: Engine,
) -> None:
    topic = queue_topic("default")
    await engine.wakeup.wait([topic], SOON, types=("t",))

    await engine.wakeup.notify(topic, jobs={"t": 1})

    assert await engine.wakeup.wait([topic], LONG, types=("t",))


async def test_news_is_told_once(engine: Engine) -> None:
    topic = queue_topic("default")
    await engine.wakeup.wait([topic], SOON)
    await engine.wakeup.notify(topic)
    assert await engine.wakeup.wait([topic], LONG)

    assert not await engine.wakeup.wait([topic], SOON)


async def test_a_waiting_task_is_woken(engine: Engine) -> None:
    topic = queue_topic("default")
    waiting = asyncio.create_task(engine.wakeup.wait([queue_topic("other"), topic], LONG))
    await engine.wakeup.wait([queue_topic("third")], SOON)

    await engine.wakeup.notify(topic)

    assert await waiting


async def test_news_of_another_topic_wakes_nobody(engine: Engine) -> None:
    await engine.wakeup.wait([queue_topic("mine")], SOON)
    await engine.wakeup.notify(queue_topic("yours"))
    await engine.wakeup.notify(FINISHED_TOPIC)

    assert not await engine.wakeup.wait([queue_topic("mine")], SOON)


async def test_another_engine_is_woken_where_the_engine_can_push(
    engine: Engine, engine_factory: Callable[[], Awaitable[Engine]]
) -> None:
    other = await engine_factory()
    topic = queue_topic("default")
    await other.wakeup.wait([topic], SOON)
    await submit(engine, new_job())

    await engine.wakeup.notify(topic)

    if engine.capabilities.push_wakeup:
        assert await other.wakeup.wait([topic], LONG)
    # Without push, and whenever a hint is lost, the next poll finds the work.
    assert len(await handed_out(other, 1)) == 1


async def test_a_hint_to_nobody_is_no_error(engine: Engine) -> None:
    for _ in range(1_000):
        await engine.wakeup.notify(queue_topic("\N{BUG} nobody"))


async def test_a_wait_can_be_cancelled(engine: Engine) -> None:
    waiting = asyncio.create_task(engine.wakeup.wait([queue_topic("default")], LONG))
    await engine.wakeup.wait([queue_topic("other")], SOON)
    waiting.cancel()

    assert isinstance(
        (await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError
    )
    await engine.wakeup.notify(queue_topic("default"))
    assert await engine.wakeup.wait([queue_topic("default")], LONG)
