"""Fixtures for pytest: `lamplighter_store`, its clock, and the same without an event loop.

They need the app: a fixture `lamplighter_app` of the program's own, or the ini option of that name
that says where the app is found, as in ``lamplighter_app = "shop.jobs:app"``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, cast

import pytest

from lamplighter.app import App
from lamplighter.model.errors import InvalidApp
from lamplighter.model.names import shown
from lamplighter.testing.clock import Clock
from lamplighter.testing.store import Store, store
from lamplighter.testing.sync import SyncStore, store_sync
from lamplighter.worker.load import load

try:
    import pytest_asyncio
except ImportError:
    # Another plugin, such as anyio's, runs the asynchronous fixtures.
    _async_fixture: Callable[..., Any] = pytest.fixture
else:
    _async_fixture = cast("Callable[..., Any]", pytest_asyncio.fixture)

_OPTION = "lamplighter_app"
_REMEDY = (
    'set lamplighter_app = "module:app" in the pytest settings, or write a fixture '
    "`lamplighter_app` that returns the App"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the settings say where the app is."""
    parser.addini(_OPTION, "the App whose jobs are tested, as module:app", default="")


@pytest.fixture
def lamplighter_app(pytestconfig: pytest.Config) -> App:
    """The app that the settings name."""
    spec = str(pytestconfig.getini(_OPTION))
    if not spec:
        raise InvalidApp("pytest does not know which app to test", hint=_REMEDY)
    return _checked(load(spec), spec)


@_async_fixture
async def lamplighter_store(lamplighter_app: App) -> AsyncGenerator[Store]:
    """A new, empty store for the app, whose clock the test moves."""
    async with store(_checked(lamplighter_app, "the fixture lamplighter_app")) as test_store:
        yield test_store


@pytest.fixture
def lamplighter_store_sync(lamplighter_app: App) -> Generator[SyncStore]:
    """The same for tests without an event loop."""
    with store_sync(_checked(lamplighter_app, "the fixture lamplighter_app")) as test_store:
        yield test_store


@pytest.fixture
def lamplighter_clock(lamplighter_store: Store) -> Clock:
    """The clock of `lamplighter_store`."""
    return lamplighter_store.clock


def _checked(found: object, source: str) -> App:
    if isinstance(found, App):
        return found
    raise InvalidApp(
        f"{shown(source)} is of type `{type(found).__name__}`, not an App",
        hint=_REMEDY,
        value=found,
    )
