"""The guide names every route, error and limit there is."""

from pathlib import Path

import pytest

from lamplighter.config import Settings
from lamplighter.server.errors import HttpError
from lamplighter.server.routes import TABLE

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "http.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("route", list(TABLE), ids=lambda route: route.name)
def test_every_route_stands_in_the_guide(route):
    named = "`/unhold`" if route.path.endswith("/unhold") else f"`{route.method} {route.path}`"
    assert named in GUIDE
    assert f"`{route.scope.value}`" in GUIDE if route.scope else "| none |" in GUIDE


@pytest.mark.parametrize("kind", HttpError.__subclasses__(), ids=lambda kind: kind.code)
def test_every_error_stands_in_the_guide_with_its_status(kind):
    (line,) = [
        line for line in GUIDE.splitlines() if line.startswith("| `") and f"`{kind.code}`" in line
    ]
    assert f"| {kind.status} |" in line


@pytest.mark.parametrize("name", [name for name in Settings.__slots__ if name.startswith("http_")])
def test_every_limit_stands_in_the_guide(name):
    assert f"`{name}`" in GUIDE
