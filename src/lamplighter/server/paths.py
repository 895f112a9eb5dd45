"""Where a request leads. Paths are matched as they were sent: `%2F` is part of a name."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

from starlette.routing import Match, Route
from starlette.types import Scope

_SLASH = "\udc2f"
"""Stands for a slash inside a name: half of a surrogate pair, which no decoded path has."""


class Place(Route):
    """A path of the service. Its parameters may hold any text, percent-encoded by the caller."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        # `$` would match before a newline too.
        self.path_regex = re.compile(self.path_regex.pattern.removesuffix("$") + r"\Z")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Tell whether a request is meant for this path, and with which parameters."""
        raw: bytes = scope.get("raw_path") or b""
        if b"%" not in raw:
            return super().matches(scope)
        # Servers decode the whole path: then a slash in a name looks like one between names.
        parts = raw.decode("latin-1").partition("?")[0].split("/")
        sent = "/".join(unquote(part).replace("/", _SLASH) for part in parts)
        match, found = super().matches({**scope, "path": sent})
        if match is not Match.NONE:
            found["path_params"] = {
                name: value.replace(_SLASH, "/") for name, value in found["path_params"].items()
            }
        return match, found


def location(collection: str, name: str, *, tenant: str | None = None) -> str:
    """Return the path of one thing in a collection, whatever it is called, of a tenant if given."""
    path = f"{collection}/{quote(name, safe='')}"
    return path if tenant is None else f"{path}?tenant={quote(tenant, safe='')}"
