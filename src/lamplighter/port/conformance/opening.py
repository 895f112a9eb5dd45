"""Opening and closing a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import StoreClosed
from lamplighter.port.conformance.builders import claim_one, handed_out, new_job, record, submit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lamplighter.port.store import Engine


async def test_what_was_submitted_is_there_after_closing_and_opening(
    engine: Engine, engine_factory: Callable[[], Awaitable[Engine]]
) -> None:
    first, second = await submit(engine, new_job(), new_job())
    taken = await claim_one(engine)
    await engine.close()

    again = await engine_factory()

    assert taken.job.id == first
    assert (await record(again, first)).nonce == taken.fence.nonce
    assert await handed_out(again, 10) == [second]


async def test_closing_twice_is_closing_once(engine: Engine) -> None:
    await engine.close()
    await engine.close()


async def test_a_closed_engine_refuses_to_work(engine: Engine) -> None:
    await engine.close()

    with pytest.raises(StoreClosed):
        await engine.jobs.submit([new_job()])
    with pytest.raises(StoreClosed):
        await engine.inspector.counts()


async def test_an_opened_store_is_of_the_current_version(engine: Engine) -> None:
    before, after = await engine.migrate()

    assert before == after > 0


async def test_capabilities_are_declared(engine: Engine) -> None:
    assert engine.capabilities.name
    assert engine.capabilities.loss_window
    assert engine.capabilities.max_batch >= 1
