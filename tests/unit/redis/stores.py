"""A store with a clock of its own, for tests that look behind the port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import redis

from lamplighter.connect import connect
from lamplighter.engines.redis import address
from lamplighter.engines.redis.audit import audit
from lamplighter.engines.redis.keys import shard_prefix
from lamplighter.engines.redis.shards import MOST_SHARDS
from lamplighter.engines.redis.transport import Transport
from lamplighter.model.ids import moved, shard_of_key
from lamplighter.model.job import NewJob
from lamplighter.port.conformance.builders import new_job
from lamplighter.port.conformance.clock import VirtualClock
from tests.servers.redis_stores import client_of, redis_prefixes


class Store:
    """An engine, its clock, and two ways past it: scripts, and a client of another make."""

    def __init__(self, url: str, client: redis.Redis) -> None:
        self.clock = VirtualClock()
        self.engine = connect(url, clock_ms=self.clock.now_ms)
        self.client = client
        self.prefix = address.parse(url).prefix
        self.shards = address.parse(url).shards
        self.call = Transport(address.parse(url), 10.0, self.clock.now_ms)
        self.call.divide(self.shards)
        self._number = 0

    def key(self, name: str, shard: int = 0) -> str:
        return shard_prefix(self.prefix, shard) + name

    def keys(self) -> dict[str, list[bytes]]:
        """All keys, by the word they begin with."""
        found: dict[str, list[bytes]] = {}
        for shard in range(self.shards):
            start = self.key("", shard).encode()
            for one in self.client.scan_iter(match=b"%b*" % start, count=1000):
                word = one[len(start) :].partition(b":")[0].decode()
                found.setdefault(word, []).append(one)
        return found

    def new_job(self, type_: str = "work", **options: object) -> NewJob:
        """Make a job; one after the other goes to another shard, if it may choose."""
        self._number = (self._number + 1) % MOST_SHARDS
        job = replace(new_job(type_), **options)
        if "id" in options:
            return job
        key = job.key
        shard = self._number if key is None else shard_of_key(job.tenant, key.scope, key.key)
        return replace(job, id=moved(job.id, shard))

    async def faults(self) -> tuple[str, ...]:
        return (await audit(self.call)).faults


@asynccontextmanager
async def opened(folder: Path, shards: int) -> AsyncIterator[Store]:
    """Open a new, empty store of so many shards."""
    with redis_prefixes(folder, shards=str(shards)) as fresh:
        url = fresh()
        with client_of(url) as client:
            store = Store(url, client)
            await store.engine.open()
            yield store
            await store.engine.close()
            await store.call.close()
