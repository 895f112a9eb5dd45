from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lamplighter import App, Context, Retry, testing

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Gateway:
    """A payment service that fails as often as a test wants."""

    def __init__(self) -> None:
        self.failures = 0
        self.calls: list[str] = []

    def charge(self, key: str) -> str:
        self.calls.append(key)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the gateway is down")
        return f"receipt-{len(self.calls)}"


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def production(tmp_path: Path) -> Path:
    """The user's database, which no test may touch."""
    return tmp_path / "production.db"


@pytest.fixture
def app(production) -> App:
    return App(f"sqlite:///{production}")


@pytest.fixture
def charge(app, gateway):
    @app.job(queue="payments", retry=Retry(delays=[60, 300, 1800]))
    async def charge(ctx: Context, order_id: str, cents: int = 100) -> str:
        return gateway.charge(ctx.effect_key("charge"))

    return charge


@pytest.fixture
async def t(app) -> AsyncIterator[testing.Store]:
    async with testing.store(app, start=NOON) as t:
        yield t
