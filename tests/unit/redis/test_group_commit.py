"""Group commit of single submissions on Redis."""

import asyncio

import pytest

from lamplighter.model import ids
from tests.servers.redis_stores import redis_prefixes
from tests.unit.server.group_commits import *  # noqa: F403


@pytest.fixture(params=["1", "4"])
def url(tmp_path, request):
    with redis_prefixes(tmp_path, shards=request.param) as fresh:
        yield fresh()


async def test_jobs_without_keys_that_are_written_together_are_in_one_shard(scene):
    tasks = []
    for number in (1, 5, 20, 3):
        tasks += await scene.begin(*[scene.job() for _ in range(number)])
    await asyncio.gather(*tasks)
    for batch in scene.written:
        assert len({ids.shard_of(job.id) for job in batch}) == 1
    assert len({ids.shard_of(batch[0].id) for batch in scene.written}) > 1
