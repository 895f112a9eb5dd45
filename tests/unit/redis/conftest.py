"""A Valkey or Redis server that these tests share, and a new prefix on it for each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis

from lamplighter.engines.redis.address import parse
from lamplighter.engines.redis.transport import Transport
from tests.servers.redis_stores import client_of, redis_prefixes, shared_redis_ends
from tests.servers.valkey import Server, any_program, start

__all__ = ["shared_redis_ends"]

PATIENCE = 20.0


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a store that does not exist yet."""
    with redis_prefixes(tmp_path) as fresh:
        yield fresh()


@pytest.fixture
def admin(url: str) -> Iterator[redis.Redis]:
    """A connection of another make."""
    with client_of(url) as client:
        yield client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, which it may stop and kill; it loses nothing by that."""
    with start(any_program(), tmp_path) as running:
        yield running


@pytest.fixture
async def make_transport() -> AsyncIterator[Callable[..., Transport]]:
    """Make transports that are closed after the test."""
    made: list[Transport] = []

    def make(url: str, deadline: float = PATIENCE) -> Transport:
        made.append(Transport(parse(url), deadline))
        return made[-1]

    yield make
    for transport in made:
        await transport.close()


@pytest.fixture
async def transport(url: str, make_transport: Callable[..., Transport]) -> Transport:
    return make_transport(url)


@pytest.fixture
def until():
    """Wait for a condition, or fail."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)

    return wait
