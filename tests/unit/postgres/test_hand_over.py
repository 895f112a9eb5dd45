"""A job that meets nobody in line is handed out as it arrives: its turn need not be written."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.model.job import Level
from lamplighter.port.conformance.builders import handed_out, new_job, submit
from lamplighter.port.conformance.clock import VirtualClock
from lamplighter.port.store import Engine
from lamplighter.port.values import TenantSettings

LATER = 60_000


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def engine(url: str, clock: VirtualClock) -> AsyncIterator[Engine]:
    one = connect(url, clock_ms=clock.now_ms)
    await one.open()
    yield one
    await one.close()


def turns(admin: psycopg.Connection, url: str) -> list[tuple[int, int]]:
    """Every turn that was ever written: whether it is awake, and how often it was changed."""
    schema = url.partition("schema=")[2].partition("&")[0]
    return admin.execute(f"SELECT awake, version FROM {schema}.turn").fetchall()


async def test_one_job_after_the_other_is_handed_out_without_a_turn(
    engine: Engine, admin: psycopg.Connection, url: str
):
    for number in range(25):
        ids = await submit(engine, new_job(tenant=f"tenant-{number % 3}"))
        assert await handed_out(engine, 5) == ids

    assert turns(admin, url) == []
    assert await handed_out(engine, 5) == []


async def test_the_turn_of_later_jobs_sleeps_on(
    engine: Engine, admin: psycopg.Connection, url: str, clock: VirtualClock
):
    later = await submit(engine, new_job(delay_ms=LATER), new_job(delay_ms=LATER))
    assert await handed_out(engine, 5) == []
    before = turns(admin, url)

    ids = await submit(engine, new_job())
    assert await handed_out(engine, 5) == ids

    assert turns(admin, url) == before != []
    clock.advance(ms=LATER)
    assert await handed_out(engine, 5) == later


async def test_a_job_that_brings_an_earlier_one_along_joins_the_line(
    engine: Engine, clock: VirtualClock
):
    later = await submit(engine, new_job(delay_ms=LATER))
    assert await handed_out(engine, 5) == []

    first, second = await submit(engine, new_job(), new_job(delay_ms=LATER // 2))
    assert await handed_out(engine, 5) == [first]

    clock.advance(ms=LATER // 2)
    assert await handed_out(engine, 5) == [second]
    clock.advance(ms=LATER)
    assert await handed_out(engine, 5) == later


async def test_a_held_tenants_job_stays(engine: Engine):
    await engine.settings.put_tenant("a", TenantSettings(held=True), by="me", reason="test")
    ids = await submit(engine, new_job(tenant="a"))
    assert await handed_out(engine, 5) == []

    await engine.settings.put_tenant("a", TenantSettings(held=False), by="me", reason="test")
    assert await handed_out(engine, 5) == ids


async def test_a_type_that_was_not_asked_for_stays(engine: Engine):
    ids = await submit(engine, new_job("rare"), new_job("work"))
    assert await handed_out(engine, 5) == ids[1:]


async def test_who_was_served_at_once_has_paid_for_it(engine: Engine):
    for _ in range(4):
        await submit(engine, new_job(tenant="a"))
        assert len(await handed_out(engine, 5)) == 1
    mine = await submit(engine, *(new_job(tenant="a") for _ in range(2)))
    yours = await submit(engine, *(new_job(tenant="b") for _ in range(2)))

    # Had it been free of charge, the name would decide, and "a" would be first.
    assert await handed_out(engine, 4) == [yours[0], mine[0], yours[1], mine[1]]


async def test_a_higher_level_is_served_at_once_and_the_lower_one_after_it(
    engine: Engine, admin: psycopg.Connection, url: str
):
    low = await submit(engine, *(new_job(level=Level.LOW) for _ in range(3)))
    high = await submit(engine, new_job(level=Level.CRITICAL))

    assert await handed_out(engine, 3) == [*high, *low[:2]]
    assert await handed_out(engine, 3) == low[2:]
    assert len(turns(admin, url)) == 1


async def test_the_tenth_hand_out_goes_to_who_starves_on_another_level(
    engine: Engine, clock: VirtualClock
):
    for level in (Level.CRITICAL, Level.LOW):
        await submit(engine, new_job(level=level))
    assert len(await handed_out(engine, 2)) == 2
    for _ in range(7):
        await submit(engine, new_job(level=Level.CRITICAL))
        assert len(await handed_out(engine, 1)) == 1
    starving = await submit(engine, new_job(level=Level.LOW))
    clock.advance(ms=600_000)

    urgent = await submit(engine, new_job(level=Level.CRITICAL))

    assert await handed_out(engine, 2) == starving + urgent
