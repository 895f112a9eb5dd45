"""A PostgreSQL server that these tests share, and a new schema on it for each."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers.postgres import Server, newest_server, start
from tests.servers.stores import postgres_schemas, shared_postgres_ends

__all__ = ["shared_postgres_ends"]

PATIENCE = 20.0


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a schema that does not exist yet."""
    with postgres_schemas(tmp_path) as fresh:
        yield fresh()


@pytest.fixture
def admin(url: str) -> Iterator[psycopg.Connection]:
    """A connection beside the engine's, where each statement commits by itself."""
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        yield connection


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, which it may stop and kill."""
    with start(newest_server(), tmp_path) as running:
        yield running


@pytest.fixture
def until():
    """Wait for a condition, or fail."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)

    return wait
