"""connect(url): the only module that names the engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidUrl, extra_hint
from lamplighter.model.names import shown
from lamplighter.port.store import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.port.store import Driver

DEFAULT_DEADLINE = 30.0


def connect(
    url: str,
    *,
    clock_ms: Callable[[], int] | None = None,
    deadline: float = DEFAULT_DEADLINE,
) -> Engine:
    """Return the engine a url names, not yet opened.

    ``clock_ms`` replaces the store's clock; it is meant for tests.
    """
    scheme = url.split(":", 1)[0] if ":" in url else ""
    if scheme == "sqlite":
        from lamplighter.engines.sqlite.driver import SqliteDriver

        return Engine(SqliteDriver(url, clock_ms or runtime.now_ms, deadline))
    if scheme in ("postgresql", "postgres"):
        return Engine(_postgres(url, clock_ms, deadline))
    if scheme in ("redis", "rediss", "unix"):
        return Engine(_redis(url, clock_ms, deadline))
    if not url.strip():
        raise InvalidUrl(
            "the address of the store is empty",
            hint="write one to LAMPLIGHTER_URL, to the file LAMPLIGHTER_URL_FILE names or behind "
            "--url, or unset them; for instance sqlite:///jobs.db",
            value=url,
        )
    if scheme in ("http", "https"):
        raise InvalidUrl(
            f"an {scheme} url is the address of a service, not of a store",
            hint="give the address of the store; programs reach the service with "
            "lamplighter.http.HttpApp",
            value=scheme,
        )
    raise InvalidUrl(
        # Without a scheme it may be anything, a password included: it is not repeated.
        f"unknown engine {shown(scheme)} in the url" if scheme else "the url names no engine",
        hint="use sqlite:///jobs.db, postgresql://user:password@host/database or "
        "redis://user:password@host",
        value=scheme,
    )


def store_name(url: str) -> str:
    """Name a store for people: without its password, an SQLite file by its whole path."""
    scheme, _, rest = redacted(url).partition(":///")
    path, mark, query = rest.partition("?")
    if scheme == "sqlite" and path:
        return f"sqlite:///{Path(path).resolve()}{mark}{query}"
    return redacted(url)


def _postgres(url: str, clock_ms: Callable[[], int] | None, deadline: float) -> Driver:
    try:
        from lamplighter.engines.postgres.driver import PostgresDriver
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise InvalidUrl(
            "the url asks for PostgreSQL, whose driver `psycopg` is not installed",
            hint=extra_hint("postgres"),
            value="psycopg",
        ) from error
    return PostgresDriver(url, clock_ms, deadline)


def _redis(url: str, clock_ms: Callable[[], int] | None, deadline: float) -> Driver:
    try:
        from lamplighter.engines.redis.driver import RedisDriver
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "hiredis":
            raise
        raise InvalidUrl(
            "the url asks for Redis, whose driver `hiredis` is not installed",
            hint=extra_hint("redis"),
            value="hiredis",
        ) from error
    return RedisDriver(url, clock_ms, deadline)
