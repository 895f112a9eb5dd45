"""What an installation may lack, because it was not asked for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from lamplighter.model.errors import InvalidOption, extra_hint

_SERVER = frozenset(
    {"anyio", "cryptography", "h11", "httptools", "jsonschema_rs", "jwt", "starlette", "uvicorn"}
)


@contextmanager
def server() -> Generator[None]:
    """Import what serves HTTP in a ``with`` block; what is missing is named with its remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _SERVER:
            raise
        raise InvalidOption(
            f"the HTTP service needs `{error.name}`, which is not installed",
            hint=extra_hint("server"),
            value=error.name,
        ) from error
