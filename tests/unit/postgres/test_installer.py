"""Making, checking and renewing a store: all of it or nothing, and never somebody else's."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from lamplighter.engines.postgres import installer, statements
from lamplighter.engines.postgres.address import parse
from lamplighter.engines.postgres.pool import Pools
from lamplighter.model.errors import (
    StoreError,
    StoreForbidden,
    StoreForeign,
    StoreNewer,
    StoreOlder,
    StoreReadOnly,
    StoreUnreachable,
)
from tests.servers.postgres import Server, find_servers, standby, start
from tests.servers.stores import with_parts

NEWEST = statements.layouts().newest
LONG = 20.0


async def prepare(url: str, *, migrate: bool = False, **options: bool) -> tuple[int, int]:
    return await installer.prepare(parse(url), LONG, migrate=migrate, **options)


def schema_of(url: str) -> str:
    return parse(url).schema


def tables(admin: psycopg.Connection, schema: str) -> int:
    row = admin.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)::oid", (schema,)
    ).fetchone()
    assert row is not None
    return row[0]


def text_of(admin: psycopg.Connection, schema: str, function: str) -> str:
    row = admin.execute(
        "SELECT prosrc FROM pg_proc WHERE proname = %s AND pronamespace = %s::regnamespace",
        (function, schema),
    ).fetchone()
    assert row is not None
    return row[0]


async def test_an_empty_database_gets_a_store(url: str, admin: psycopg.Connection):
    assert await prepare(url) == (0, NEWEST)
    assert await prepare(url) == (NEWEST, NEWEST)
    assert await prepare(url, migrate=True) == (NEWEST, NEWEST)

    assert tables(admin, schema_of(url)) > 20


async def test_an_empty_schema_that_is_there_is_used(url: str, admin: psycopg.Connection):
    admin.execute(f"CREATE SCHEMA {schema_of(url)}")

    assert await prepare(url) == (0, NEWEST)


async def test_many_that_start_together_make_one_store(url: str):
    answers = await asyncio.gather(*(prepare(url) for _ in range(8)))

    assert {after for _, after in answers} == {NEWEST}
    assert [before for before, _ in answers].count(0) >= 1


async def test_two_stores_in_one_database_do_not_meet(url: str, admin: psycopg.Connection):
    other = f"{schema_of(url)}_b"
    try:
        await asyncio.gather(prepare(url), prepare(with_parts(url, schema=other)))

        admin.execute(f"UPDATE {other}.meta SET value = 99 WHERE name = 'settings'")
        row = admin.execute(
            f"SELECT value FROM {schema_of(url)}.meta WHERE name = 'settings'"
        ).fetchone()
        assert row == (1,)
    finally:
        admin.execute(f"DROP SCHEMA IF EXISTS {other} CASCADE")


async def test_functions_do_not_depend_on_the_search_path_of_the_caller(url: str):
    await prepare(url)
    pools = Pools(parse(url), LONG, None)

    rows = await pools.rows(f"SELECT * FROM {pools.function('beat')}('w', 1, '{{}}')")

    assert rows == [(False, 1, 0)]
    await pools.close()


async def test_a_newer_store_is_left_alone(url: str, admin: psycopg.Connection):
    await prepare(url)
    admin.execute(f"UPDATE {schema_of(url)}.meta SET value = 99 WHERE name = 'version'")

    for migrate in (False, True):
        with pytest.raises(StoreNewer, match="99"):
            await prepare(url, migrate=migrate)


async def test_a_store_from_before_the_first_release_is_left_alone(
    url: str, admin: psycopg.Connection
):
    await prepare(url)
    old = statements.FIRST - 1
    admin.execute(f"UPDATE {schema_of(url)}.meta SET value = {old} WHERE name = 'version'")

    for migrate in (False, True):
        with pytest.raises(StoreOlder, match=rf"has version {old}, .* cannot be migrated"):
            await prepare(url, migrate=migrate)


async def test_an_older_store_is_migrated_only_when_asked(
    url: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    await prepare(url)
    more = (
        *statements.migrations(),
        "CREATE TABLE later (n integer); INSERT INTO later VALUES (1)",
    )
    monkeypatch.setattr(statements, "migrations", lambda: more)

    with pytest.raises(StoreOlder, match="lamplighter migrate"):
        await prepare(url)
    assert await prepare(url, migrate=True) == (NEWEST, NEWEST + 1)
    assert await prepare(url) == (NEWEST + 1, NEWEST + 1)

    assert admin.execute(f"SELECT n FROM {schema_of(url)}.later").fetchall() == [(1,)]


async def test_a_migration_that_fails_changes_nothing(
    url: str, admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    broken = (*statements.migrations(), "CREATE TABLE later (n integer); SELECT 1 / 0")
    monkeypatch.setattr(statements, "migrations", lambda: broken)

    with pytest.raises(StoreError, match="division by zero"):
        await prepare(url)

    assert admin.execute("SELECT to_regnamespace(%s)", (schema_of(url),)).fetchone() == (None,)


async def test_another_programs_schema_is_refused_and_not_touched(
    url: str, admin: psycopg.Connection
):
    schema = schema_of(url)
    admin.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.orders (id integer)")

    for migrate in (False, True):
        with pytest.raises(StoreForeign, match=schema):
            await prepare(url, migrate=migrate)

    assert tables(admin, schema) == 1


async def test_a_schema_with_another_meta_table_is_not_ours(url: str, admin: psycopg.Connection):
    schema = schema_of(url)
    admin.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.meta (name text, value text)")

    with pytest.raises(StoreForeign):
        await prepare(url)


async def test_functions_that_changed_are_made_anew_when_the_store_is_opened(
    url: str, admin: psycopg.Connection
):
    await prepare(url)
    schema = schema_of(url)
    before = text_of(admin, schema, "mark_at")
    admin.execute(
        f"CREATE OR REPLACE FUNCTION {schema}.mark_at(mark_ text, now_ bigint) RETURNS text "
        "LANGUAGE sql IMMUTABLE AS $$ SELECT 'old' $$"
    )
    admin.execute(f"UPDATE {schema}.meta SET value = 1 WHERE name = 'functions'")

    assert await prepare(url) == (NEWEST, NEWEST)

    assert text_of(admin, schema, "mark_at") == before


async def test_a_function_that_gives_something_else_than_before_takes_its_place(
    url: str, admin: psycopg.Connection
):
    await prepare(url)
    schema = schema_of(url)
    admin.execute(f"DROP FUNCTION {schema}.beat")
    admin.execute(
        f"CREATE FUNCTION {schema}.beat(id_ text, running_ integer, unstarted_ uuid[]) "
        "RETURNS integer LANGUAGE sql AS 'SELECT 1'"
    )
    admin.execute(f"CREATE FUNCTION {schema}.of_the_user() RETURNS integer LANGUAGE sql RETURN 7")
    admin.execute(f"UPDATE {schema}.meta SET value = 1 WHERE name = 'functions'")

    await prepare(url)

    rows = admin.execute(f"SELECT * FROM {schema}.beat('w', 1, '{{}}')").fetchall()
    assert rows == [(False, 1, 0)]
    assert admin.execute(f"SELECT {schema}.of_the_user()").fetchone() == (7,)


async def test_functions_are_replaced_under_running_calls(url: str, admin: psycopg.Connection):
    await prepare(url)
    pools = Pools(parse(url), LONG, None)
    done = asyncio.Event()

    async def work() -> int:
        count = 0
        while not done.is_set():
            await pools.rows(f"SELECT * FROM {pools.function('beat')}('w', 1, '{{}}')")
            count += 1
        return count

    working = [asyncio.create_task(work()) for _ in range(2)]
    for _ in range(5):
        admin.execute(f"UPDATE {schema_of(url)}.meta SET value = 1 WHERE name = 'functions'")
        await prepare(url)
    done.set()

    assert all(await asyncio.gather(*working))
    await pools.close()


async def test_the_clock_of_tests_is_made_only_for_tests(url: str, admin: psycopg.Connection):
    schema = schema_of(url)
    await prepare(url)
    assert "lamplighter.now" not in text_of(admin, schema, "now_ms")

    await prepare(url, test_clock=True)
    assert "lamplighter.now" in text_of(admin, schema, "now_ms")

    await prepare(url)
    assert "lamplighter.now" in text_of(admin, schema, "now_ms")


@pytest.fixture
def guest(admin: psycopg.Connection, url: str):
    """A user without any rights, and the address as that user."""
    name = f"guest_{schema_of(url)}"
    admin.execute(f"CREATE ROLE {name} LOGIN")
    yield name, url.replace("//postgres@", f"//{name}@")
    admin.execute(f"DROP OWNED BY {name} CASCADE")
    admin.execute(f"DROP ROLE {name}")


async def test_a_user_who_may_not_create_the_store_is_told_what_to_ask_for(
    url: str, admin: psycopg.Connection, guest: tuple[str, str]
):
    name, address = guest
    with pytest.raises(StoreForbidden) as refused:
        await prepare(address)
    assert f"CREATE SCHEMA {schema_of(url)} AUTHORIZATION {name}" in refused.value.hint

    admin.execute(f"CREATE SCHEMA {schema_of(url)}")
    with pytest.raises(StoreForbidden) as refused:
        await prepare(address)
    assert f"ALTER SCHEMA {schema_of(url)} OWNER TO {name}" in refused.value.hint

    admin.execute(f"GRANT USAGE, CREATE ON SCHEMA {schema_of(url)} TO {name}")
    assert await prepare(address) == (0, NEWEST)


async def test_a_user_who_may_not_use_the_store_is_told_so(
    url: str, guest: tuple[str, str], admin: psycopg.Connection
):
    await prepare(url)
    name, address = guest
    with pytest.raises(StoreForbidden, match="may not use"):
        await prepare(address)

    admin.execute(f"GRANT USAGE ON SCHEMA {schema_of(url)} TO {name}")
    with pytest.raises(StoreForbidden) as refused:
        await prepare(address)
    assert "grant" in refused.value.hint

    admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema_of(url)} TO {name}")
    assert await prepare(address) == (NEWEST, NEWEST)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (("postgres@", "nobody_here@"), "user"),
        (("/lamplighter_gone", "/lamplighter_gone"), "create the database"),
        (("127.0.0.1", "no-such-host.invalid"), "host"),
    ],
)
async def test_an_address_that_leads_nowhere_says_which_part_is_wrong(
    url: str, change: tuple[str, str], remedy: str
):
    wrong = with_parts(url, "lamplighter_gone") if "gone" in change[0] else url.replace(*change)

    with pytest.raises(StoreUnreachable) as refused:
        await prepare(wrong)

    assert remedy in refused.value.hint


async def test_a_server_that_is_not_there_is_waited_for_only_a_moment(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(installer, "PATIENCE", 0.3)

    with pytest.raises(StoreUnreachable) as refused:
        await prepare("postgresql://ada:secret@127.0.0.1:1/db")

    assert "secret" not in f"{refused.value}"
    assert "port" in refused.value.hint


async def test_a_wrong_password_is_told_without_showing_it(server: Server):
    with server.connect() as admin:
        admin.execute("CREATE ROLE ada LOGIN PASSWORD 'right'")
    rules = server.data / "pg_hba.conf"
    rules.write_text("host all ada 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    server.restart()
    url = server.url().replace("postgres@", "ada:hushhush@")

    with pytest.raises(StoreUnreachable) as refused:
        await prepare(url)

    assert "password" in refused.value.hint
    assert "hushhush" not in f"{refused.value} {refused.value.value}"


async def test_a_standby_is_refused(server: Server):
    await prepare(server.url())
    with standby(server) as copy:
        for options in ({}, {"target_session_attrs": "any"}):
            with pytest.raises(StoreReadOnly, match="only reads"):
                await prepare(copy.url(**options))


async def test_a_database_that_cannot_hold_all_text_is_refused(server: Server):
    with server.connect() as admin:
        admin.execute(
            "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )

    with pytest.raises(StoreUnreachable, match="LATIN1"):
        await prepare(server.url("latin"))


async def test_the_oldest_server_at_hand_can_hold_a_store(tmp_path: Path):
    with start(find_servers()[-1], tmp_path) as old:
        assert await prepare(old.url()) == (0, NEWEST)
