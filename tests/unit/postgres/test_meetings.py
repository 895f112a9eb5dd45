"""Those who change the store meet those who use it: both get their way."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import psycopg
import pytest

from lamplighter.connect import connect
from lamplighter.engines.postgres import installer
from lamplighter.engines.postgres.address import parse
from lamplighter.model.errors import StoreError
from lamplighter.model.filters import Filter
from lamplighter.model.job import JobState
from lamplighter.model.lifecycle import Next
from lamplighter.port.conformance.builders import completed, failed, new_job, running
from lamplighter.port.store import Engine
from tests.servers.stores import with_parts

LONG = 20.0
BLOCKED = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'maker' AND wait_event_type = 'Lock'"
)


def schema_of(url: str) -> str:
    return parse(url).schema


@pytest.fixture
async def engine(url: str) -> AsyncIterator[Engine]:
    opened = connect(url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def reader(url: str) -> Iterator[psycopg.Connection]:
    """Somebody with a transaction, who gives way to nobody."""
    with psycopg.connect(url.partition("?")[0]) as connection:
        connection.execute("SET deadlock_timeout = '60s'")
        yield connection


def age(admin: psycopg.Connection, schema: str) -> None:
    """Let the functions look like another version's."""
    admin.execute(f"UPDATE {schema}.meta SET value = 1 WHERE name = 'functions'")


def is_current(admin: psycopg.Connection, schema: str) -> bool:
    row = admin.execute(f"SELECT value <> 1 FROM {schema}.meta WHERE name = 'functions'").fetchone()
    return row == (True,)


def make(url: str) -> asyncio.Task[tuple[int, int]]:
    address = parse(with_parts(url, application_name="maker"))
    return asyncio.create_task(installer.prepare(address, LONG, migrate=False))


async def test_functions_are_made_anew_against_somebody_who_lists_jobs(
    engine: Engine, url: str, admin: psycopg.Connection, reader, until
):
    schema = schema_of(url)
    age(admin, schema)
    reader.execute(f"SELECT FROM {schema}.live_job")
    making = make(url)
    await until(lambda: admin.execute(BLOCKED).fetchall())

    # Each now waits for the other, and the server tells one of them to begin again.
    await asyncio.to_thread(reader.execute, f"SELECT FROM {schema}.seen_job")
    reader.commit()

    await making
    assert is_current(admin, schema)
    assert (await engine.inspector.jobs(Filter(), limit=5)).jobs == []


async def test_opening_outlives_the_end_of_its_session(
    engine: Engine, url: str, admin: psycopg.Connection, reader, until
):
    schema = schema_of(url)
    age(admin, schema)
    reader.execute(f"SELECT FROM {schema}.seen_job")
    making = make(url)
    await until(lambda: admin.execute(BLOCKED).fetchall())

    admin.execute(f"SELECT pg_terminate_backend(pid) FROM ({BLOCKED}) AS maker")
    reader.commit()

    await making
    assert is_current(admin, schema)


async def test_what_always_fails_is_not_repeated(
    url: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    tries = 0

    async def broken(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise psycopg.errors.InternalError_("a puzzle")

    monkeypatch.setattr(installer, "_fill", broken)

    with pytest.raises(StoreError, match="a puzzle"):
        await make(url)

    assert tries == 3


async def test_a_view_with_other_columns_takes_its_place(
    engine: Engine, url: str, admin: psycopg.Connection
):
    schema = schema_of(url)
    await engine.jobs.submit([new_job()])
    admin.execute(f"DROP VIEW {schema}.seen_job CASCADE")
    admin.execute(f"CREATE VIEW {schema}.seen_job AS SELECT 1 AS other")
    age(admin, schema)

    await make(url)

    assert len((await engine.inspector.jobs(Filter(), limit=5)).jobs) == 1


async def test_a_job_ends_while_the_table_of_its_day_is_made(
    engine: Engine, url: str, admin: psycopg.Connection, reader, until
):
    schema = schema_of(url)
    succeeding, cancelled = await running(engine), await running(engine)
    reader.execute(f"SELECT {schema}.make_days()")
    ended = Next(state=JobState.CANCELLED)
    settling = [
        asyncio.create_task(engine.jobs.settle([one]))
        for one in (completed(succeeding), replace(failed(cancelled), next=ended))
    ]
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await until(lambda: admin.execute(waits).fetchone() == (2,))

    reader.commit()

    answers = [one.answer for (one,) in await asyncio.gather(*settling)]
    assert answers == ["done", "done"]
    row = admin.execute(f"SELECT count(*) FROM {schema}.done").fetchone()
    assert row == (2,)
