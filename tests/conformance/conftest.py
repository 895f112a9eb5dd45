"""Binds the engines to the conformance suite: a new engine is one more function in ENGINES."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import pytest

pytest.register_assert_rewrite("lamplighter.port.conformance")

from lamplighter.port.conformance.plugin import (  # noqa: E402
    clock,
    connector,
    engine,
    engine_factory,
    fresh_engine,
    home_shard,
    open_engine,
    store_url,
)

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


@contextmanager
def sqlite_files(folder: Path) -> Iterator[FreshStore]:
    """A new file for each store."""
    numbers = count()
    yield lambda: f"sqlite:///{folder}/store-{next(numbers)}.db"


@contextmanager
def postgres_stores(folder: Path) -> Iterator[FreshStore]:
    """An empty schema for each store, on a server that all tests share."""
    from tests.servers.stores import emptied_schemas

    with emptied_schemas(folder) as fresh:
        yield fresh


@contextmanager
def new_postgres_stores(folder: Path) -> Iterator[FreshStore]:
    """A new schema for each store, which is dropped afterwards."""
    from tests.servers.stores import postgres_schemas

    with postgres_schemas(folder) as fresh:
        yield fresh


@contextmanager
def pooled_postgres_stores(folder: Path) -> Iterator[FreshStore]:
    """An empty schema, through a pooler that gives each transaction another connection."""
    from tests.servers.stores import emptied_schemas, pooled

    with emptied_schemas(folder) as fresh:
        yield lambda: pooled(fresh())


@contextmanager
def new_pooled_postgres_stores(folder: Path) -> Iterator[FreshStore]:
    """A new schema, through the same pooler."""
    from tests.servers.stores import pooled, postgres_schemas

    with postgres_schemas(folder) as fresh:
        yield lambda: pooled(fresh())


@contextmanager
def redis_stores(folder: Path) -> Iterator[FreshStore]:
    """A new prefix for each store, on a server that all tests share."""
    from tests.servers.redis_stores import redis_prefixes

    with redis_prefixes(folder) as fresh:
        yield fresh


@contextmanager
def sharded_redis_stores(folder: Path) -> Iterator[FreshStore]:
    """The same, each store divided into four shards."""
    from tests.servers.redis_stores import redis_prefixes

    with redis_prefixes(folder, shards="4") as fresh:
        yield fresh


ENGINES: dict[str, Callable[[Path], AbstractContextManager[FreshStore]]] = {
    "sqlite": sqlite_files,
    "postgres": postgres_stores,
    "postgres-pooled": pooled_postgres_stores,
    "redis": redis_stores,
    "redis-sharded": sharded_redis_stores,
}
MAKING = ("opening", "checkup")
"""Modules of the suite whose tests look at how a store is made: to them none is given."""
NEW = {"postgres": new_postgres_stores, "postgres-pooled": new_pooled_postgres_stores}
CHOSEN = os.environ.get("LAMPLIGHTER_ENGINES", "sqlite").split(",")

if {"postgres", "postgres-pooled"} & set(CHOSEN):
    # Found by pytest under their names: server and pooler end with the session.
    from tests.servers.stores import shared_pooler_ends, shared_postgres_ends

    __all__ += ["shared_pooler_ends", "shared_postgres_ends"]

if {"redis", "redis-sharded"} & set(CHOSEN):
    from tests.servers.redis_stores import shared_redis_ends

    __all__ += ["shared_redis_ends"]


@pytest.fixture(params=CHOSEN)
def fresh_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FreshStore]:
    """Gives the addresses of new, empty stores of one engine."""
    engine = request.param
    new = request.function.__module__.rpartition(".")[2] in MAKING
    with (NEW.get(engine, ENGINES[engine]) if new else ENGINES[engine])(tmp_path) as fresh:
        yield fresh
