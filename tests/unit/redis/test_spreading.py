"""Long lists of jobs spread over the shards of a store, and so does a tenant's fair share."""

from collections import Counter
from pathlib import Path

import pytest

from lamplighter import App
from lamplighter.client import SPREAD
from lamplighter.model.ids import shard_of
from lamplighter.model.job import Claim
from lamplighter.port.conformance.builders import request
from lamplighter.port.store import Engine
from tests.servers.redis_stores import redis_prefixes
from tests.unit.server.conftest import Scene

SHARDS = 4
GROUPS = 60


@pytest.fixture
async def app(tmp_path: Path):
    with redis_prefixes(tmp_path, shards=str(SHARDS)) as fresh:
        app = App(fresh())

        @app.job
        async def work(number: int) -> None: ...

        yield app
        await app.close()


def shards_of(ids: list[str]) -> list[int]:
    return [shard_of(one) % SHARDS for one in ids]


async def claim(engine: Engine, limit: int) -> list[Claim]:
    return (await engine.jobs.claim(request(limit=limit, types=("work",)))).claims


async def test_a_list_is_spread_by_the_hundred_in_its_order(app: App):
    calls = [await app.call("work", {"number": n}) for n in range(GROUPS * SPREAD)]

    handles = await app.submit_many(calls)

    found = shards_of([handle.id for handle in handles])
    groups = [found[start : start + SPREAD] for start in range(0, len(found), SPREAD)]
    assert all(len(set(group)) == 1 for group in groups)
    assert set(found) == set(range(SHARDS))
    engine = await app.engine()
    assert (await engine.inspector.counts())["waiting"] == GROUPS * SPREAD
    again = await app.submit_many(calls)
    assert [one.id for one in again] == [one.id for one in handles]
    assert all(one.existing for one in again)


async def test_calls_whose_ids_were_read_are_spread_too_and_keep_them(app: App):
    calls = [await app.call("work", {"number": n}) for n in range(GROUPS * SPREAD)]
    ids = [call.id for call in calls]

    handles = await app.submit_many(calls)

    assert [handle.id for handle in handles] == ids
    assert set(shards_of(ids)) == set(range(SHARDS))


async def test_the_flood_of_a_tenant_has_its_share_of_all_shards(app: App):
    flood = [await app.call("work", {"number": n}, tenant="flood") for n in range(4_000)]
    await app.submit_many(flood)
    for n in range(400):
        await app.submit("work", {"number": n}, tenant="calm")
    engine = await app.engine()

    taken = Counter[str]()
    for _ in range(40):
        taken.update(one.job.tenant for one in await claim(engine, 10))

    assert taken.total() == 400
    # Equal weights, so about half; chance decides which shards are asked first.
    assert 120 <= taken["flood"] <= 280, taken


async def test_a_batch_over_http_is_spread_by_the_hundred(app: App):
    scene = Scene(app, [])
    await scene.publish("work", schema={})
    items = [{"type": "work", "arguments": {"number": n}} for n in range(GROUPS * SPREAD)]

    response = await scene.call("POST", "/v1/jobs:batch", send=items)

    found = shards_of([job["id"] for job in response.json["jobs"]])
    groups = [found[start : start + SPREAD] for start in range(0, len(found), SPREAD)]
    assert all(len(set(group)) == 1 for group in groups)
    assert set(found) == set(range(SHARDS))
