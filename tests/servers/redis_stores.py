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
_GONE = -2
"""Answer of PTTL for a key that has expired in the meantime."""


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
            for place in range(0, len(keys), 1000):
                some = keys[place : place + 1000]
                wrong += _problems(client, some)
                client.unlink(*some)
    assert not wrong, f"keys that are not as described: {wrong[:5]}"


def _problems(client: redis.Redis, keys: list[bytes]) -> list[str]:
    """Say what is wrong with keys: nobody knows one, it is of another type, or it expires."""
    with client.pipeline(transaction=False) as asked:
        for key in keys:
            asked.type(key).pttl(key)
        answers = asked.execute()
    problems: list[str] = []
    for key, found, ms in zip(keys, answers[::2], answers[1::2], strict=True):
        kind = key.partition(b"}:")[2].partition(b":")[0].decode()
        if kind not in KINDS:
            problems.append(f"{key!r} is not known")
            continue
        if ms == _GONE:
            continue
        if found.decode() != KINDS[kind]:
            problems.append(f"{key!r} is a {found.decode()}")
        if (ms >= 0) != (kind in EXPIRING):
            problems.append(f"{key!r} {'expires' if ms >= 0 else 'never expires'}")
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
