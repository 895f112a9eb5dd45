"""Whether a database holds our store, and how it gets one: all of it or nothing.

Tables come from `migrations/`, each run once; functions from `sql/`, made anew whenever they have
changed. Both happen in one transaction under a lock, so that processes which start together do
not get into each other's way. Functions are replaced under the feet of running workers: a call
uses the old one or the new one, and a call that is hit in between is repeated.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import Error, errors, sql

from lamplighter.engines.postgres import faults, statements
from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.connection import Connection, connect_patiently
from lamplighter.model.errors import (
    StoreError,
    StoreForeign,
    StoreNewer,
    StoreOlder,
    StoreReadOnly,
    StoreUnreachable,
)

MINIMUM_SERVER = 14
_PATIENCE = 5.0

_FACTS = """
SELECT current_setting('server_version_num')::integer,
       current_setting('server_version'),
       pg_is_in_recovery(),
       current_setting('server_encoding'),
       current_user::text,
       has_database_privilege(current_database(), 'CREATE'),
       n.oid IS NOT NULL,
       coalesce(has_schema_privilege(n.oid, 'USAGE'), false),
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false),
       (SELECT count(*) FROM pg_class AS c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p')),
       (SELECT count(*) FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname IN ('name', 'value')
        WHERE c.relnamespace = n.oid AND c.relname = 'meta') = 2
       AND EXISTS (SELECT FROM pg_class AS c
                   JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'handout'
                   WHERE c.relnamespace = n.oid AND c.relname = 'job'),
       (SELECT p.prosrc FROM pg_proc AS p WHERE p.pronamespace = n.oid AND p.proname = 'now_ms')
FROM (SELECT %s::text AS name) AS given
LEFT JOIN pg_namespace AS n ON n.nspname = given.name
"""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the server says about itself and about the schema."""

    number: int
    server: str
    standby: bool
    encoding: str
    user: str
    may_create_schema: bool
    schema: bool
    may_use: bool
    may_create: bool
    tables: int
    ours: bool
    clock: str | None


@dataclass(frozen=True, slots=True)
class _State:
    """What the schema holds: the version of the tables, and which functions."""

    version: int
    functions: int
    clock: str | None


async def prepare(
    address: Address, deadline: float, *, migrate: bool, test_clock: bool = False
) -> tuple[int, int]:
    """Check that the store is ours and of this version; fill an empty one, migrate if asked.

    Gives the version before and after. A store that is up to date is only read.
    """
    connection = await connect_patiently(address, min(deadline, _PATIENCE))
    try:
        async with _explained(address):
            newest = len(statements.migrations())
            state = await _known(connection, address, migrate=migrate)
            if _up_to_date(state, test_clock=test_clock):
                return newest, newest
            before = await _fill(connection, address, migrate=migrate, test_clock=test_clock)
            return before, newest
    finally:
        connection.let_go()


async def _fill(
    connection: Connection, address: Address, *, migrate: bool, test_clock: bool
) -> int:
    """Bring a store to the last version; gives the version it had."""
    async with connection.transaction():
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            (f"lamplighter install {address.schema}",),
        )
        state = await _known(connection, address, migrate=migrate)
        if _up_to_date(state, test_clock=test_clock):
            return state.version
        facts = await _facts(connection, address)
        if not facts.schema:
            await connection.execute(
                sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema))
            )
        # Temporary tables come last, so that none can stand in for one of ours.
        await connection.execute(
            "SELECT set_config('search_path', quote_ident(%s) || ', pg_temp', true)",
            (address.schema,),
        )
        for step in statements.migrations()[state.version :]:
            await _script(connection, step)
        await _make_functions(connection)
        if test_clock:
            await _script(connection, statements.TEST_CLOCK)
        await _note(connection, "version", len(statements.migrations()))
        await _note(connection, "functions", statements.fingerprint())
        return state.version


async def _make_functions(connection: Connection) -> None:
    """Make all functions; where one changed what it takes or gives, drop ours first."""
    try:
        async with connection.transaction():
            for file in statements.functions():
                await _script(connection, file)
    except errors.InvalidFunctionDefinition:
        names = ", ".join(f"'{name}'" for name in statements.function_names())
        await _script(connection, _DROP_FUNCTIONS.replace("{names}", names))
        for file in statements.functions():
            await _script(connection, file)


_DROP_FUNCTIONS = """
DO $$
DECLARE
    one_ record;
BEGIN
    FOR one_ IN
        SELECT p.oid::regprocedure AS name FROM pg_proc AS p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proname IN ({names})
    LOOP
        EXECUTE format('DROP FUNCTION %s', one_.name);
    END LOOP;
END
$$
"""


async def _known(connection: Connection, address: Address, *, migrate: bool) -> _State:
    """Give what the schema holds, if this program may use it."""
    newest = len(statements.migrations())
    state = await _state(connection, address)
    if state.version > newest:
        raise StoreNewer(
            f"the store at {address.shown} has version {state.version}; "
            f"this program knows versions up to {newest}",
            hint="update lamplighter on this machine",
            value=address.shown,
        )
    if 0 < state.version < newest and not migrate:
        raise StoreOlder(
            f"the store at {address.shown} has version {state.version}; "
            f"this program needs version {newest}",
            hint="run: lamplighter migrate --url URL",
            value=address.shown,
        )
    return state


async def _state(connection: Connection, address: Address) -> _State:
    facts = await _facts(connection, address)
    _check_server(facts, address)
    if not facts.schema or facts.tables == 0:
        _check_may_install(facts, address)
        return _State(0, 0, None)
    foreign = StoreForeign(
        f"the schema `{address.schema}` at {address.shown} belongs to another program",
        hint="name another schema in the url, for instance ?schema=lamplighter",
        value=address.shown,
    )
    if not facts.may_use:
        raise StoreUnreachable(
            f"the user `{facts.user}` may not use the schema `{address.schema}` at {address.shown}",
            hint=f"GRANT USAGE ON SCHEMA {address.schema} TO {facts.user}, and rights on all its "
            "tables, sequences and functions",
            value=address.shown,
        )
    if not facts.ours:
        raise foreign
    cursor = await connection.execute(
        sql.SQL("SELECT name::text, value::bigint FROM {}.meta").format(
            sql.Identifier(address.schema)
        )
    )
    found: dict[str, int] = dict(await cursor.fetchall())
    if "version" not in found:
        raise foreign
    return _State(found["version"], found.get("functions", 0), facts.clock)


async def _facts(connection: Connection, address: Address) -> _Facts:
    cursor = await connection.execute(_FACTS, (address.schema,))
    row: Any = await cursor.fetchone()
    return _Facts(*row)


def _check_server(facts: _Facts, address: Address) -> None:
    if facts.number < MINIMUM_SERVER * 10_000:
        raise StoreUnreachable(
            f"the server at {address.shown} is PostgreSQL {facts.server}; "
            f"{MINIMUM_SERVER} or newer is needed",
            hint="update the server",
            value=facts.server,
        )
    if facts.standby:
        raise StoreReadOnly(
            f"the PostgreSQL server at {address.shown} is a standby, which only reads",
            hint="name the primary server; with several hosts in the url it is found by itself",
            value=address.shown,
        )
    if facts.encoding != "UTF8":
        raise StoreUnreachable(
            f"the database at {address.shown} keeps text as {facts.encoding}, not as UTF8",
            hint="CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one",
            value=facts.encoding,
        )


def _check_may_install(facts: _Facts, address: Address) -> None:
    if facts.may_create if facts.schema else facts.may_create_schema:
        return
    if facts.schema:
        wanted = f"GRANT USAGE, CREATE ON SCHEMA {address.schema} TO {facts.user}"
    else:
        wanted = f"CREATE SCHEMA {address.schema} AUTHORIZATION {facts.user}"
    raise StoreUnreachable(
        f"the user `{facts.user}` may not create the store in the schema `{address.schema}` "
        f"at {address.shown}",
        hint=f"let an administrator run: {wanted}",
        value=address.shown,
    )


def _up_to_date(state: _State, *, test_clock: bool) -> bool:
    return (
        state.version == len(statements.migrations())
        and state.functions == statements.fingerprint()
        and (not test_clock or "lamplighter.now" in (state.clock or ""))
    )


async def _note(connection: Connection, name: str, value: int) -> None:
    await connection.execute(
        "INSERT INTO meta (name, value) VALUES (%s, %s) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


async def _script(connection: Connection, text: str) -> None:
    """Run a file with many statements; they belong to the transaction around them."""
    script: Any = text
    await connection.execute(script)


@asynccontextmanager
async def _explained(address: Address) -> AsyncGenerator[None]:
    try:
        yield
    except StoreError:
        raise
    except Error as error:
        raise faults.explain(error, address.shown) from error
