"""Empty stores on a server that all tests of one process share."""

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

import psycopg
import pytest
from psycopg import sql

from tests.proxies.rotation import Rotation
from tests.servers.postgres import ServerFailed, newest_server, start

GIVEN = "LAMPLIGHTER_TEST_POSTGRES"


class _Shared:
    """The address of a database, found or made at first use and given back at the end."""

    def __init__(self) -> None:
        self.names = count(1)
        self.emptied: list[str] = []
        """Schemas with a store in which nothing is."""
        self._url: str | None = None
        self._stack = ExitStack()
        self._process = 0

    def url(self) -> str:
        if self._url is None:
            given = os.environ.get(GIVEN)
            self._process = os.getpid()
            self.emptied.clear()
            self._url = self._stack.enter_context(_own_server() if not given else _borrowed(given))
            atexit.register(self.close)
        return self._url

    def close(self) -> None:
        """Stop the server; the next use starts another. A forked child leaves it alone."""
        if self._url is not None and os.getpid() == self._process:
            self._url = None
            atexit.unregister(self.close)
            self._stack.close()


_shared = _Shared()


class _Pooler:
    """A pooler before the shared server, started at first use."""

    def __init__(self) -> None:
        self._rotation: Rotation | None = None

    def through(self, url: str) -> str:
        """Give the address of a store on the shared server as it is through the pooler."""
        if self._rotation is None:
            self._rotation = Rotation(_shared.url())
            self._rotation.start()
        # Behind a pooler for transactions nothing can be heard.
        return with_parts(self._rotation.through(url), listen="off")

    def close(self) -> None:
        """Fail if a transaction has left something behind, and stop."""
        rotation, self._rotation = self._rotation, None
        if rotation is not None:
            try:
                rotation.verify()
            finally:
                rotation.stop()


_pooler = _Pooler()


@pytest.fixture(scope="session", autouse=True)
def shared_postgres_ends() -> Iterator[None]:
    """Import this in a conftest whose tests use the stores: their server ends with the session."""
    yield
    _shared.close()


@pytest.fixture(scope="session", autouse=True)
def shared_pooler_ends(shared_postgres_ends: None) -> Iterator[None]:
    """Import this too where tests use pooled stores: it checks what they left in the sessions."""
    yield
    _pooler.close()


@contextmanager
def postgres_schemas(folder: Path) -> Iterator[Callable[[], str]]:
    """A new schema for each store, made by the engine itself and dropped afterwards."""
    names: list[str] = []

    def fresh() -> str:
        url = _shared.url()
        names.append(f"s_{next(_shared.names)}")
        return _address(url, names[-1])

    try:
        yield fresh
    finally:
        if names:
            _drop(_shared.url(), names)


@contextmanager
def emptied_schemas(folder: Path) -> Iterator[Callable[[], str]]:
    """The same for tests that see a store only through its port: what they leave is emptied.

    To make a store takes many times as long as most of these tests. The first ones are made by
    the engine itself; those who come later are given what others have left.
    """
    names: list[str] = []

    def fresh() -> str:
        url, known = _shared.url(), _shared.emptied
        names.append(known.pop() if known else f"s_{next(_shared.names)}")
        return _address(url, names[-1])

    try:
        yield fresh
    finally:
        if names:
            _empty(_shared.url(), names)


def pooled(url: str) -> str:
    """Give the address of such a store as it is through a pooler that changes connections."""
    return _pooler.through(url)


def _address(url: str, schema: str) -> str:
    # A server of our own is quick because it may lose what it has: say that we know.
    known = {} if os.environ.get(GIVEN) else {"durability": "none"}
    return with_parts(url, **known, schema=schema)


def with_parts(url: str, database: str | None = None, **options: str) -> str:
    """Give the same address with another database, or with more options."""
    parts = urlsplit(url)
    path = parts.path if database is None else f"/{quote(database, safe='')}"
    query = urlencode({**dict(parse_qsl(parts.query)), **options}, quote_via=quote)
    return urlunsplit(parts._replace(path=path, query=query))


@contextmanager
def _own_server() -> Iterator[str]:
    """A new server; its log is deleted unless something goes wrong."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-log-"))
    try:
        with start(newest_server(), folder, fast=True) as server:
            yield server.url()
    except BaseException:
        sys.stderr.write(f"the log of the PostgreSQL server is kept in {folder}\n")
        raise
    shutil.rmtree(folder)


@contextmanager
def _borrowed(url: str) -> Iterator[str]:
    """A database of our own on a server that somebody else runs."""
    name = f"lamplighter_test_{secrets.token_hex(6)}"
    _administer(url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield with_parts(url, name)
    finally:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        _administer(url, drop.format(sql.Identifier(name)))


def _administer(url: str, statement: sql.Composed) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(statement)
    except psycopg.Error as error:
        raise ServerFailed(
            f"{GIVEN} names a server that cannot be used: {error}\n\n"
            "hint: it must answer and let its user create databases; unset the variable and the "
            "tests start a server themselves"
        ) from error


def _drop(url: str, names: list[str]) -> None:
    """Hundreds of stores would fill the disk. One still in use goes with the server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '2s'")
        connection.execute("SET client_min_messages = 'error'")
        for name in names:
            try:
                connection.execute(
                    sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
                )
            except psycopg.errors.LockNotAvailable:
                continue


_EMPTIER = """
CREATE OR REPLACE FUNCTION pg_temp.empty_store(schema_ regnamespace) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    name_ text;
    filled_ text;
BEGIN
    -- Partitions are made as days go by.
    FOR name_ IN
        SELECT c.oid::regclass::text FROM pg_class AS c
        WHERE c.relnamespace = schema_ AND c.relispartition AND c.relkind = 'r'
          AND c.relname <> 'done_other'
    LOOP
        EXECUTE 'DROP TABLE ' || name_;
    END LOOP;
    SELECT string_agg(c.oid::regclass::text, ', ') INTO filled_ FROM pg_class AS c
    WHERE c.relnamespace = schema_ AND c.relkind = 'r' AND c.relname <> 'meta'
      AND pg_relation_size(c.oid) > 0;
    IF filled_ IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || filled_;
    END IF;
    PERFORM setval(s.seqrelid, s.seqstart, false)
    FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid
    WHERE c.relnamespace = schema_;
    -- What the installer has noted stays; else there is what the first migration writes.
    EXECUTE format(
        'DELETE FROM %1$s.meta WHERE name NOT IN (''version'', ''functions'', ''program'');'
        'INSERT INTO %1$s.meta (name, value) VALUES (''settings'', 1)', schema_);
END $$
"""


def _empty(url: str, names: list[str]) -> None:
    """Make stores as they were when they were new. One still in use is not used again."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '2s'")
        connection.execute("SET client_min_messages = 'error'")
        connection.execute(_EMPTIER)
        for name in names:
            try:
                connection.execute("SELECT pg_temp.empty_store(%s::text::regnamespace)", (name,))
            except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedTable):
                continue  # nobody has made a store there
            except psycopg.errors.LockNotAvailable:
                continue
            _shared.emptied.append(name)
