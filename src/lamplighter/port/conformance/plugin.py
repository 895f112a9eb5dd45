"""The fixtures of the suite. Whoever binds an engine supplies `fresh_store` and imports these.

``fresh_store()`` gives the address of a new, empty store. ``connector`` names, as
``module:function``, what makes an engine of an address; other processes use it too.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from lamplighter.model.ids import SHARD_BITS
from lamplighter.port.conformance import builders
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.conformance.contender import DEFAULT_CONNECTOR, load
from lamplighter.port.store import Engine

__all__ = [
    "clock",
    "connector",
    "engine",
    "engine_factory",
    "fresh_engine",
    "home_shard",
    "open_engine",
    "store_url",
]

FreshStore = Callable[[], str]
OpenEngine = Callable[[str, Callable[[], int] | None], Awaitable[Engine]]


@pytest.fixture
def clock() -> VirtualClock:
    """The store's clock, moved by hand."""
    return VirtualClock()


@pytest.fixture(autouse=True)
def home_shard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The shard of this test: always the same for one, so that all tests together see them all."""
    shard = zlib.crc32(request.node.name.encode()) % (1 << SHARD_BITS)
    monkeypatch.setattr(builders, "home", shard)
    return shard


@pytest.fixture
def connector() -> str:
    """Where the function is found that makes an engine of an address."""
    return DEFAULT_CONNECTOR


@pytest.fixture
def store_url(fresh_store: FreshStore) -> str:
    """The address of the store of this test."""
    return fresh_store()


@pytest_asyncio.fixture
async def open_engine(connector: str) -> AsyncIterator[OpenEngine]:
    """Open an engine on an address, with a clock or with the store's own; closed after the test."""
    opened: list[Engine] = []

    async def open_one(url: str, clock_ms: Callable[[], int] | None) -> Engine:
        engine = load(connector)(url, clock_ms=clock_ms)
        await engine.open()
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        await engine.close()


@pytest_asyncio.fixture
async def engine(open_engine: OpenEngine, store_url: str, clock: VirtualClock) -> Engine:
    """An engine on a fresh store, driven by the virtual clock."""
    return await open_engine(store_url, clock.now_ms)


@pytest.fixture
def engine_factory(
    open_engine: OpenEngine,
    store_url: str,
    clock: VirtualClock,
) -> Callable[[], Awaitable[Engine]]:
    """Open one more engine on the same store."""

    async def open_another() -> Engine:
        return await open_engine(store_url, clock.now_ms)

    return open_another


@pytest.fixture
def fresh_engine(fresh_store: FreshStore, connector: str) -> Callable[[Callable[[], int]], Engine]:
    """Make an engine, not yet opened, on a store of its own; for tests that need many stores."""

    def make(clock_ms: Callable[[], int]) -> Engine:
        return load(connector)(fresh_store(), clock_ms=clock_ms)

    return make
