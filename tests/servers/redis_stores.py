"""New, empty stores on a Redis or Valkey server that all tests of one process share."""

import atexit
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import pytest
import redis

from lamplighter.engines.redis.keys import EXPIRING, KINDS
from tests.servers.valkey import ServerFailed, any_program, start

GIVEN = "LAMPLIGHTER_TEST_REDIS"


class _Shared:
    """The address of a server, found or started at first use and given back at the end."""

    def __init__(self) -> None:
        self.names = count(1)
        self.origin = secrets.token_hex(4)
        self._url: str | None = None
        self._stack = ExitStack()
        self._process = 0

    def url(self) -> str:
        if self._url is None:
            self._process = os.getpid()
            given = os.environ.get(GIVEN)
            self._url = _checked(given) if given else self._stack.enter_context(_own_server())
            atexit.register(self.close)
        return self._url

    def close(self) -> None:
        """Stop the server; the next use starts another. A forked child leaves it alone."""
        if self._url is not None and os.getpid() == self._process:
            self._url = None
            atexit.unregister(self.close)
            self._stack.close()


_shared = _Shared()


@pytest.fixture(scope="session", autouse=True)
def shared_redis_ends() -> Iterator[None]:
    """Import this in a conftest whose tests use the stores: their server ends with the session."""
    yield
    _shared.close()


@contextmanager
def redis_prefixes(folder: Path, **options: str) -> Iterator[Callable[[], str]]:
    """A new prefix for each store; its keys are looked at and deleted afterwards."""
    prefixes: list[str] = []

    def fresh() -> str:
        prefixes.append(f"t{_shared.origin}.{next(_shared.names)}")
        # The server is quick because it may lose what it has: say that we know.
        return with_options(_shared.url(), durability="none", prefix=prefixes[-1], **options)

    try:
        yield fresh
    finally:
        if prefixes:
            _clear(_shared.url(), prefixes)


def with_options(url: str, **options: str) -> str:
    """Give the same address with more options."""
    parts = urlsplit(url)
    query = urlencode({**dict(parse_qsl(parts.query)), **options}, quote_via=quote)
    return urlunsplit(parts._replace(query=query))


def client_of(url: str) -> redis.Redis:
    """Open a connection of another make to the server of a store."""
    return redis.Redis.from_url(url.partition("?")[0])


def _clear(url: str, prefixes: list[str]) -> None:
    """Delete what the stores have left; fail if a key is not as `keys.py` describes it."""
    wrong: list[str] = []
    with client_of(url) as client:
        for prefix in prefixes:
            keys: list[bytes] = list(client.scan_iter(match=f"{{{prefix}:*", count=1000))
            wrong += [problem for key in keys for problem in _problems(client, key)]
            for place in range(0, len(keys), 1000):
                client.unlink(*keys[place : place + 1000])
    assert not wrong, f"keys that are not as described: {wrong[:5]}"


def _problems(client: redis.Redis, key: bytes) -> list[str]:
    """Say what is wrong with a key: nobody knows it, it is of another type, or it expires."""
    kind = key.partition(b"}:")[2].partition(b":")[0].decode()
    wanted = KINDS.get(kind)
    if wanted is None:
        return [f"{key!r} is not known"]
    found = client.type(key).decode()
    if found == "none":
        return []
    problems = [] if found == wanted else [f"{key!r} is a {found}"]
    expires = client.pttl(key) >= 0
    if expires != (kind in EXPIRING):
        problems.append(f"{key!r} {'expires' if expires else 'never expires'}")
    return problems


@contextmanager
def _own_server() -> Iterator[str]:
    """A new server; its log is deleted unless something goes wrong."""
    folder = Path(tempfile.mkdtemp(prefix="redis-log-"))
    try:
        with start(any_program(), folder, fast=True) as server:
            yield server.url()
    except BaseException:
        sys.stderr.write(f"the log of the Redis server is kept in {folder}\n")
        raise
    shutil.rmtree(folder)


def _checked(url: str) -> str:
    try:
        with client_of(url) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise ServerFailed(
            f"{GIVEN} names a server that cannot be used: {error}\n\n"
            "hint: it must answer; unset the variable and the tests start a server themselves"
        ) from error
    return url
