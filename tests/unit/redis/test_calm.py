"""A sign of life tells whether anything is overdue, where one shard has everything."""

from pathlib import Path

import pytest

from lamplighter.port.conformance.builders import running
from lamplighter.port.conformance.schedule_builders import MINUTE, new_schedule, put
from lamplighter.port.values import NewWorker
from tests.unit.redis.stores import Store, opened

ME = NewWorker(id="w1", host="machine", pid=7, queues=("default",), slots=4)


async def is_calm(store: Store) -> bool:
    return not (await store.engine.membership.beat(ME.id, 0)).overdue


@pytest.mark.parametrize(("shards", "told"), [(1, True), (4, False)])
async def test_a_store_with_nothing_overdue_is_calm_if_one_shard_can_tell(
    tmp_path: Path, shards: int, *, told: bool
) -> None:
    async with opened(tmp_path, shards) as store:
        await store.engine.membership.join(ME)

        assert await is_calm(store) is told


async def test_a_lease_disturbs_from_its_end(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as store:
        await store.engine.membership.join(ME)
        await running(store.engine)
        store.clock.advance(ms=29_999)
        assert await is_calm(store)

        store.clock.advance(ms=1)

        assert not await is_calm(store)


async def test_a_lease_disturbs_that_the_clock_has_stretched(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as store:
        await store.engine.membership.join(ME)
        await running(store.engine)

        store.clock.advance(ms=-1)

        assert not await is_calm(store)


async def test_a_schedule_disturbs_from_the_instant_it_is_due(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as store:
        await store.engine.membership.join(ME)
        await put(store.engine, new_schedule())
        store.clock.advance(ms=MINUTE - 1)
        assert await is_calm(store)

        store.clock.advance(ms=1)

        assert not await is_calm(store)


async def test_who_is_not_known_is_told_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, 1) as store:
        assert not await is_calm(store)
