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
    raise InvalidUrl(
        f"unknown engine {shown(scheme or url)} in the url",
        hint="use sqlite:///jobs.db or postgresql://user:password@host/database",
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
