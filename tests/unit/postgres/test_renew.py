"""A row that a frozen client has locked holds up no renewal of the others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from uuid import UUID

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import ids
from lamplighter.engines.postgres.address import parse
from lamplighter.model.job import Claim
from lamplighter.port.conformance.builders import completed, record, running, settle_one
from lamplighter.port.store import Engine
from lamplighter.port.values import Renewal, RenewAnswer

HELD, LOST, UNKNOWN = RenewAnswer.HELD, RenewAnswer.LOST, RenewAnswer.UNKNOWN
LEASE_MS = 90_000
PROMPTLY = 3.0


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = connect(url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def freeze(url: str) -> Iterator[Callable[[str], None]]:
    """Lock a job in a transaction that stays open, as a client that is stopped leaves it."""
    with psycopg.connect(url.partition("?")[0]) as client:

        def lock(job_id: str) -> None:
            client.execute(
                f"UPDATE {parse(url).schema}.job SET due = due WHERE id = %s",
                (UUID(bytes=ids.uuid(job_id)),),
            )

        yield lock
        client.rollback()


async def renew(engine: Engine, claims: list[Claim]) -> list[RenewAnswer]:
    leases = [Renewal(one.job.id, one.fence) for one in claims]
    async with asyncio.timeout(PROMPTLY):
        return [one.answer for one in await engine.jobs.renew(leases, LEASE_MS)]


async def test_a_locked_row_is_unknown_and_the_others_are_renewed_promptly(engine, freeze):
    claims = [await running(engine) for _ in range(4)]
    await settle_one(engine, completed(claims[3]))
    before = (await record(engine, claims[1].job.id)).expires_at_ms
    freeze(claims[1].job.id)

    assert await renew(engine, claims) == [HELD, UNKNOWN, HELD, LOST]

    ends = [(await record(engine, one.job.id)).expires_at_ms for one in claims[:3]]
    assert ends[1] == before
    assert min(ends[0], ends[2]) > before


async def test_a_row_that_is_free_again_is_renewed(engine, url):
    taken = await running(engine)
    with psycopg.connect(url.partition("?")[0]) as client:
        client.execute(
            f"SELECT FROM {parse(url).schema}.job WHERE id = %s FOR UPDATE",
            (UUID(bytes=ids.uuid(taken.job.id)),),
        )
        assert await renew(engine, [taken]) == [UNKNOWN]
        client.rollback()

    assert await renew(engine, [taken]) == [HELD]


async def test_a_row_that_is_locked_only_against_removal_is_renewed(engine, url):
    taken = await running(engine)
    with psycopg.connect(url.partition("?")[0]) as client:
        client.execute(
            f"SELECT FROM {parse(url).schema}.job WHERE id = %s FOR KEY SHARE",
            (UUID(bytes=ids.uuid(taken.job.id)),),
        )

        assert await renew(engine, [taken]) == [HELD]
        client.rollback()
