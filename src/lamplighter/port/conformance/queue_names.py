"""Queues: who has brought their names, and how an empty one goes again; holds are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lamplighter.model.errors import InvalidInput
from lamplighter.port.conformance.builders import claim, completed, new_job, submit
from lamplighter.port.values import ChangeAnswer, NewWorker, QueueSettings

if TYPE_CHECKING:
    from lamplighter.port.conformance.clock import VirtualClock
    from lamplighter.port.store import Engine

BY = {"by": "alice", "reason": "tidying up"}
DONE, CONFLICT = ChangeAnswer.DONE, ChangeAnswer.CONFLICT


async def _names(engine: Engine) -> list[str]:
    return [queue.name for queue in await engine.inspector.queues()]


async def _remove(engine: Engine, name: str) -> ChangeAnswer:
    return await engine.settings.remove_queue(name, **BY)


async def test_a_tenant_brings_so_many_queues_and_no_more(engine: Engine) -> None:
    enter = engine.settings.enter_queues

    assert await enter(["a", "b"], tenant="t", most=3)
    assert not await enter(["c", "d"], tenant="t", most=3)
    assert await enter(["c"], tenant="t", most=3)
    assert not await enter(["d"], tenant="t", most=3)
    assert await enter(["d"], tenant="other", most=3)


async def test_queues_that_were_brought_count_once_and_for_their_first_tenant(
    engine: Engine,
) -> None:
    enter = engine.settings.enter_queues
    await enter(["a", "a"], tenant="t", most=1)

    assert await enter(["a"], tenant="t", most=1)
    assert await enter(["a"], tenant="other", most=0)
    assert not await enter(["b"], tenant="other", most=0)


async def test_a_queue_that_is_removed_makes_room_for_another(engine: Engine) -> None:
    enter = engine.settings.enter_queues
    await enter(["it's ☃", "b"], tenant="a b:c", most=2)
    await submit(engine, new_job(queue="it's ☃"))
    (one,) = await claim(engine, 1, "it's ☃")
    await engine.jobs.settle([completed(one)])

    assert await _remove(engine, "it's ☃") is DONE
    assert await enter(["c"], tenant="a b:c", most=2)


async def test_an_empty_queue_is_removed_with_its_settings(engine: Engine) -> None:
    await submit(engine, new_job(queue="old"))
    await engine.settings.put_queue("old", QueueSettings(max_wait_ms=5_000), **BY)
    (one,) = await claim(engine, 1, "old")
    await engine.jobs.settle([completed(one)])

    assert await _remove(engine, "old") is DONE
    assert await _names(engine) == []
    assert await engine.inspector.queue("old") is None
    assert await _remove(engine, "old") is ChangeAnswer.ALREADY
    assert await _remove(engine, "never") is ChangeAnswer.UNKNOWN


async def test_a_removed_queue_is_listed_while_it_has_jobs_and_works_as_before(
    engine: Engine,
) -> None:
    await engine.settings.put_queue("old", QueueSettings(held=True), **BY)
    assert await _remove(engine, "old") is DONE
    await submit(engine, new_job(queue="old"))

    assert await _names(engine) == ["old"]
    found = await engine.inspector.queue("old")
    assert found is not None
    assert found.held is None
    (one,) = await claim(engine, 1, "old")
    assert await _remove(engine, "old") is CONFLICT
    await engine.jobs.settle([completed(one)])
    assert await _names(engine) == []


async def test_a_removed_queue_comes_back_when_something_is_set_on_it(engine: Engine) -> None:
    await engine.settings.put_queue("old", QueueSettings(), **BY)
    await _remove(engine, "old")
    await engine.settings.put_queue("old", QueueSettings(max_wait_ms=5_000), **BY)

    assert await _names(engine) == ["old"]


async def test_a_queue_with_jobs_is_not_removed(engine: Engine) -> None:
    ids = await submit(engine, new_job(queue="a"), new_job(queue="b", delay_ms=60_000))
    await submit(engine, new_job(queue="c", held=True))

    assert [await _remove(engine, name) for name in ("a", "b", "c")] == [CONFLICT] * 3
    await claim(engine, 1, "a")
    assert await _remove(engine, "a") is CONFLICT
    await engine.jobs.cancel([ids[1]], **BY)
    assert await _remove(engine, "b") is DONE


async def test_a_queue_that_a_worker_serves_is_not_removed(
    engine: Engine, clock: VirtualClock
) -> None:
    await engine.settings.put_queue("a", QueueSettings(), **BY)
    worker = NewWorker(id="w", host="h", pid=1, queues=("a", "b"), slots=1)
    await engine.membership.join(worker)

    assert await _remove(engine, "a") is CONFLICT
    clock.advance(seconds=31)
    assert await _remove(engine, "a") is DONE


async def test_who_removes_a_queue_is_noted_on_one_line(engine: Engine) -> None:
    with pytest.raises(InvalidInput):
        await engine.settings.remove_queue("a", by="two\nlines", reason="")


async def test_held_jobs_of_a_tenant_are_counted_up_to_a_limit(engine: Engine) -> None:
    ids = await submit(engine, *(new_job(tenant="t") for _ in range(4)), new_job(tenant="other"))
    await submit(engine, new_job(tenant="t", held=True))
    await engine.jobs.hold([*ids[:3], ids[4]], **BY)

    assert await engine.inspector.held("t", most=100) == 4
    assert await engine.inspector.held("t", most=3) == 3
    assert await engine.inspector.held("nobody", most=3) == 0
    await engine.jobs.unhold(ids[:1], **BY)
    await engine.jobs.cancel(ids[1:2], **BY)
    assert await engine.inspector.held("t", most=100) == 2
