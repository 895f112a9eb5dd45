"""connect(url): the only module that names the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.model.errors import InvalidUrl
from lamplighter.model.names import shown
from lamplighter.port.instrumented import Instrumented

if TYPE_CHECKING:
    from collections.abc import Callable

    from lamplighter.port.store import Engine

DEFAULT_DEADLINE = 30.0


def connect(
    url: str,
    *,
    clock_ms: Callable[[], int] | None = None,
    deadline: float = DEFAULT_DEADLINE,
) -> Engine:
    """Give the engine a url names, not yet opened.

    ``clock_ms`` replaces the store's clock; it is meant for tests.
    """
    scheme = url.split(":", 1)[0] if ":" in url else ""
    if scheme == "sqlite":
        from lamplighter.engines.sqlite.engine import SqliteEngine

        return Instrumented(SqliteEngine(url, clock_ms or runtime.now_ms, deadline))
    if scheme in ("postgresql", "postgres"):
        return Instrumented(_postgres(url, clock_ms, deadline))
    if scheme in ("redis", "rediss", "unix"):
        return Instrumented(_redis(url, clock_ms, deadline))
    if not url.strip():
        raise InvalidUrl(
            "the address of the store is empty",
            hint="write one to LAMPLIGHTER_URL, to the file LAMPLIGHTER_URL_FILE names or behind "
            "--url, or unset them; for instance sqlite:///jobs.db",
            value=url,
        )
    raise InvalidUrl(
        # Without a scheme it may be anything, a password included: it is not repeated.
        f"unknown engine {shown(scheme)} in the url" if scheme else "the url names no engine",
        hint="use sqlite:///jobs.db, postgresql://user:password@host/database or "
        "redis://user:password@host",
        value=scheme,
    )


def _postgres(url: str, clock_ms: Callable[[], int] | None, deadline: float) -> Engine:
    try:
        from lamplighter.engines.postgres.engine import PostgresEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise InvalidUrl(
            "the url asks for PostgreSQL, whose driver `psycopg` is not installed",
            hint="pip install 'lamplighter[postgres]'",
            value="psycopg",
        ) from error
    return PostgresEngine(url, clock_ms, deadline)


def _redis(url: str, clock_ms: Callable[[], int] | None, deadline: float) -> Engine:
    try:
        from lamplighter.engines.redis.engine import RedisEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "hiredis":
            raise
        raise InvalidUrl(
            "the url asks for Redis, whose driver `hiredis` is not installed",
            hint="pip install 'lamplighter[redis]'",
            value="hiredis",
        ) from error
    return RedisEngine(url, clock_ms, deadline)
