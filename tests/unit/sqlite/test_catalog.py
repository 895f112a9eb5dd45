"""The catalogue: what is known of lanes without a query."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lamplighter import runtime
from lamplighter.engines.sqlite.reader import Reader
from lamplighter.model.job import Level
from lamplighter.port.conformance.builders import new_job, submit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from lamplighter.engines.sqlite.transaction import Transaction
    from lamplighter.port.store import Engine


@pytest.fixture
async def reader(engine: Engine, path: Path) -> AsyncIterator[Reader]:
    made = Reader(path, runtime.now_ms)
    yield made
    await made.close()


async def lanes_of(reader: Reader, queue: str) -> list[tuple[str, Level, str]]:
    def look(tx: Transaction) -> list[tuple[str, Level, str]]:
        return [(lane.queue, lane.level, lane.type) for lane in tx.catalog.lanes_of(queue)]

    return await reader.run(look)


async def test_lanes_of_a_queue_are_known_highest_level_first(
    engine: Engine, reader: Reader
) -> None:
    await submit(engine, new_job(queue="a"), new_job(queue="b"))
    assert await lanes_of(reader, "a") == [("a", Level.NORMAL, "work")]
    await submit(engine, new_job("mail", queue="a"), new_job(queue="a", level=Level.HIGH))

    assert await lanes_of(reader, "a") == [
        ("a", Level.HIGH, "work"),
        ("a", Level.NORMAL, "work"),
        ("a", Level.NORMAL, "mail"),
    ]
    assert await lanes_of(reader, "b") == [("b", Level.NORMAL, "work")]
    assert await lanes_of(reader, "c") == []


async def test_looking_at_a_queue_takes_no_longer_where_there_are_many(
    engine: Engine, reader: Reader
) -> None:
    async def cost(queues: int) -> float:
        """Make so many queues, and give the processor time that one of the first 200 takes."""
        await submit(engine, *(new_job(queue=f"q{number}") for number in range(queues)))

        def look(tx: Transaction) -> float:
            began = time.thread_time()
            for number in range(200):
                tx.catalog.lanes_of(f"q{number}")
            return time.thread_time() - began

        return min([await reader.run(look) for _ in range(5)])

    few = await cost(200)
    many = await cost(4_000)

    assert many < few * 5
