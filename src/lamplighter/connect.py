"""connect(url): the only module that names the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamplighter import runtime
from lamplighter.engines.sqlite.engine import SqliteEngine
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

    ``clock_ms`` replaces the store's clock where the engine keeps its own; it is meant for tests.
    """
    scheme = url.split(":", 1)[0] if ":" in url else ""
    if scheme != "sqlite":
        raise InvalidUrl(
            f"unknown engine {shown(scheme or url)} in the url {shown(url)}",
            hint="use sqlite:///jobs.db",
            value=url,
        )
    return Instrumented(SqliteEngine(url, clock_ms or runtime.now_ms, deadline))
