from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path

import pytest

from lamplighter import App, Context, runtime
from lamplighter.model.filters import Filter
from lamplighter.model.job import Claim
from lamplighter.model.lifecycle import settle
from lamplighter.model.outcome import Outcome
from lamplighter.port.store import FINISHED_TOPIC
from lamplighter.port.values import ClaimRequest


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
async def app(url) -> AsyncIterator[App]:
    app = App(url)
    yield app
    await app.close()


@pytest.fixture
def charge(app):
    @app.job(queue="payments")
    async def charge(ctx: Context, order_id: str, cents: int = 100) -> str:
        return f"{order_id}:{cents}"

    return charge


@pytest.fixture
def take_anything(app):
    @app.job
    def take_anything(value) -> None: ...

    return take_anything


@pytest.fixture
def run_at_is_required(app):
    @app.job
    def remind(at: datetime) -> None: ...

    return remind


@pytest.fixture
def stored(app) -> Callable[[], Awaitable[int]]:
    async def count() -> int:
        engine = await app.engine()
        return len((await engine.inspector.jobs(Filter(), limit=100)).jobs)

    return count


@pytest.fixture
def claim(app) -> Callable[[], Awaitable[list[Claim]]]:
    """Take everything that is due, as a worker would."""

    async def claim() -> list[Claim]:
        engine = await app.engine()
        queues = sorted({"default", *(info.queue for info in app.registry.infos())})
        claimed = await engine.jobs.claim(
            ClaimRequest(
                nonce=runtime.nonce(),
                worker="tester",
                queues=tuple((queue, 10) for queue in queues),
                types=app.registry.names(),
                limit=10,
                lease_ms=30_000,
            )
        )
        return claimed.claims

    return claim


@pytest.fixture
def finish(app, claim) -> Callable[[Outcome], Awaitable[None]]:
    """Let everything that is due come to this outcome."""

    async def finish(outcome: Outcome) -> None:
        engine = await app.engine()
        claims = await claim()
        assert claims
        await engine.jobs.settle([settle(claim, outcome) for claim in claims])
        await engine.wakeup.notify(FINISHED_TOPIC)

    return finish
