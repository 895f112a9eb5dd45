"""A PostgreSQL server that these tests share, and proxies before it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.proxies.addresses import target_of
from tests.proxies.link import Link
from tests.proxies.rotation import Rotation
from tests.proxies.wires import PostgresWire
from tests.servers.stores import postgres_schemas, shared_postgres_ends

__all__ = ["shared_postgres_ends"]

PATIENCE = 20.0


@pytest.fixture
def store_url(tmp_path: Path) -> Iterator[str]:
    """The address of a schema that does not exist yet, without a proxy."""
    with postgres_schemas(tmp_path) as fresh:
        yield fresh()


@pytest.fixture
def url(store_url: str) -> str:
    """The address of the server itself."""
    return store_url.partition("?")[0]


@pytest.fixture
def admin(url: str) -> Iterator[psycopg.Connection]:
    """A connection that goes through no proxy, with a table to write to."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.note (n integer)")
        yield connection
        connection.execute("DROP TABLE public.note")


@pytest.fixture
def link(url: str) -> Iterator[Link]:
    with Link(target_of(url), wire=PostgresWire) as running:
        yield running


@pytest.fixture
def rotation(url: str) -> Iterator[Rotation]:
    """Looks at a session after every transaction."""
    with Rotation(url, look_every=1) as running:
        yield running


@pytest.fixture
def until():
    """Wait for a condition, or fail."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"waited {PATIENCE:g} s in vain"
            time.sleep(0.01)

    return wait
