"""Whether a database holds our store, and how it gets one: all of it or nothing.

Tables come from `migrations/`, each run once; functions from `sql/`, made anew whenever they have
changed. Both happen in one transaction under a lock, so that processes which start together do
not get into each other's way. Functions are replaced under the feet of running workers: a call
uses the old one or the new one, and a call that is hit in between is repeated. What a newer
version has made, an older one leaves alone.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, TypeVar

from psycopg import Error, errors, sql

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.postgres import (
    faults,
    functions,
    rights,
    server,
    statements,
    strangers,
)
from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.connection import Connection, connect_patiently, guarded
from lamplighter.engines.postgres.rights import NOBODY, Holders
from lamplighter.model.errors import (
    LamplighterError,
    StoreBusy,
    StoreForbidden,
    StoreForeign,
    StoreUnreachable,
)

T = TypeVar("T")

PATIENCE = 5.0
_BACKOFF = Backoff(0.05, 1.0, spread=0.5)
_MOST_PUZZLES = 3
_LOCK_SECONDS = 10.0
"""How long a change waits for those who use the store; whoever comes then waits behind it."""


@dataclass(frozen=True, slots=True)
class State:
    """What the schema holds: the version of the tables, which functions, and who made them."""

    version: int
    functions: int = 0
    program: int = 0
    clock: str | None = None


async def prepare(
    address: Address,
    deadline: float,
    *,
    migrate: bool,
    create: bool = True,
    test_clock: bool = False,
    grants: Holders = NOBODY,
) -> tuple[int, int]:
    """Check that the store is ours and of this version; fill an empty one, migrate if asked.

    Gives the version before and after. A store that is up to date is only read, unless rights are
    to be given: users who are not known are refused before anything is changed. Without ``create``
    one that is not there is refused.
    """
    newest = statements.layouts().newest

    async def once(connection: Connection) -> tuple[int, int]:
        async with guarded(connection):
            await rights.check(connection, (*grants.run, *grants.read))
            facts = await _usable(connection, address)
            state = await known(connection, address, facts, migrate=migrate)
            if migrate and await _lacks_functions(connection, address, state):
                state = replace(state, functions=0)
        if state.version == 0 and not create:
            raise _missing(address)
        if state.version == 0:
            server.check_may_install(facts, address)
        if migrate or not up_to_date(state, test_clock=test_clock):
            await _check_strangers(connection, address, facts, state)
        if state.version > 0 and grants != NOBODY:
            server.check_may_grant(facts, address)
        before = state.version
        if not up_to_date(state, test_clock=test_clock):
            if state.version > 0:
                server.check_may_change(facts, address)
            before = await _fill(
                connection, address, migrate=migrate, test_clock=test_clock, grants=grants
            )
        elif grants != NOBODY:
            await _give(connection, address, grants)
        return before, newest

    return await _until_done(address, deadline, once)


async def grant(address: Address, deadline: float, holders: Holders) -> None:
    """Let database users run jobs, or look, in a store that is there."""

    async def once(connection: Connection) -> None:
        async with guarded(connection):
            await rights.check(connection, (*holders.run, *holders.read))
            facts = await _usable(connection, address)
            state = await known(connection, address, facts, migrate=False)
            if state.version == 0:
                raise _missing(address)
            server.check_may_grant(facts, address)
        await _give(connection, address, holders)

    await _until_done(address, deadline, once)


async def known(
    connection: Connection, address: Address, facts: server.Facts, *, migrate: bool
) -> State:
    """Return what the schema holds, if this program may use it."""
    state = await _state(connection, address, facts)
    statements.layouts().check(
        state.version,
        store=f"the store at {address.shown}",
        value=address.shown,
        migrate=migrate,
        remedy="lamplighter migrate --url URL",
    )
    return state


def program() -> int:
    """Return the number of this version of lamplighter: it grows from release to release."""
    parts = [int(part) for part in re.findall(r"\d+", metadata.version("lamplighter"))[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return (major * 1000 + minor) * 1000 + patch


# ── changing the store ───────────────────────────────────────────────────────────────────────


async def _give(connection: Connection, address: Address, grants: Holders) -> None:
    async with guarded(connection):
        await _lock(connection, address)
        await _enter(connection, address)
        await rights.give(connection, grants)


async def _fill(
    connection: Connection, address: Address, *, migrate: bool, test_clock: bool, grants: Holders
) -> int:
    """Bring a store to the last version and give rights; gives the version it had."""
    async with guarded(connection):
        await _lock(connection, address)
        facts = await _usable(connection, address)
        state = await known(connection, address, facts, migrate=migrate)
        if migrate and await _lacks_functions(connection, address, state):
            state = replace(state, functions=0)
        if up_to_date(state, test_clock=test_clock):
            # Somebody else was quicker, and the store may be theirs.
            if grants != NOBODY:
                server.check_may_grant(facts, address)
                await _enter(connection, address)
                await rights.give(connection, grants)
            return state.version
        await strangers.check(connection, address, facts.user)
        await _enter(connection, address)
        if not facts.schema:
            name = sql.Identifier(address.schema)
            await connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        holders = await rights.holders(connection)
        for step in statements.layouts().to_apply(state.version, statements.migrations()):
            await _script(connection, step)
        await functions.make(connection, address.schema)
        if test_clock:
            await _script(connection, statements.TEST_CLOCK)
        await rights.give(connection, holders)
        await rights.give(connection, grants)
        await _note(connection, "version", statements.layouts().newest)
        await _note(connection, "functions", statements.fingerprint())
        await _note(connection, "program", program())
        return state.version


async def _check_strangers(
    connection: Connection, address: Address, facts: server.Facts, state: State
) -> None:
    """Refuse early, and before anything else is said of the store, who may change it."""
    if state.version == 0 or facts.owns:
        async with guarded(connection):
            await strangers.check(connection, address, facts.user)


async def _usable(connection: Connection, address: Address) -> server.Facts:
    """Return what a server says that can keep a store, as well as the address asks for."""
    facts = await server.read(connection, address.schema)
    server.check(facts, address)
    return facts


async def _lock(connection: Connection, address: Address) -> None:
    """Wait until nobody else changes the store."""
    await connection.execute(
        "SELECT set_config('lock_timeout', %s, true)", (f"{_LOCK_SECONDS:g}s",)
    )
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
        (f"lamplighter install {address.schema}",),
    )


async def _enter(connection: Connection, address: Address) -> None:
    """Let plain names mean what is in the store."""
    await connection.execute(
        # Temporary tables come last, so that none can stand in for one of ours.
        "SELECT set_config('search_path', quote_ident(%s) || ', pg_temp', true)",
        (address.schema,),
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


# ── looking at the store ─────────────────────────────────────────────────────────────────────


async def _state(connection: Connection, address: Address, facts: server.Facts) -> State:
    if not facts.schema or facts.tables == 0:
        return State(0)
    foreign = StoreForeign(
        f"the schema `{address.schema}` at {address.shown} belongs to another program",
        hint="name another schema in the url, for instance ?schema=lamplighter_jobs; if the store "
        "was there, tables of it are gone: restore them from a backup",
        value=address.shown,
    )
    if not facts.ours:
        raise foreign
    if not facts.may_use:
        raise StoreForbidden(
            f"the user `{facts.user}` may not use the schema `{address.schema}` at {address.shown}",
            hint=f"run `lamplighter migrate --grant-run {facts.user}` (or --grant-read) as its "
            f"owner `{facts.owner}`",
            value=facts.user,
        )
    meta = sql.Identifier(address.schema, "meta")
    cursor = await connection.execute(
        sql.SQL("SELECT name::text, value::bigint FROM {}").format(meta)
    )
    found: dict[str, int] = dict(await cursor.fetchall())
    if "version" not in found:
        raise foreign
    return State(found["version"], found.get("functions", 0), found.get("program", 0), facts.clock)


async def _lacks_functions(connection: Connection, address: Address, state: State) -> bool:
    """Tell whether somebody has dropped functions that this program made."""
    if state.functions != statements.fingerprint():
        return False
    wanted = statements.function_names()
    cursor = await connection.execute(
        "SELECT count(DISTINCT p.proname) FROM pg_proc AS p "
        "JOIN pg_namespace AS n ON n.oid = p.pronamespace "
        "WHERE n.nspname = %s AND p.proname = ANY (%s)",
        (address.schema, wanted),
    )
    return await cursor.fetchone() != (len(set(wanted)),)


def _missing(address: Address) -> StoreUnreachable:
    return StoreUnreachable(
        f"there is no store at {address.shown} yet",
        hint="name another one with --url or LAMPLIGHTER_URL, or run: lamplighter migrate",
        value=address.shown,
    )


def up_to_date(state: State, *, test_clock: bool = False) -> bool:
    """Tell whether nothing has to be made or changed."""
    if test_clock and "lamplighter.now" not in (state.clock or ""):
        return False
    # What a newer program of the same version of the tables has made serves us, too.
    current = state.functions == statements.fingerprint() or state.program > program()
    return state.version == statements.layouts().newest and current


async def _until_done(
    address: Address, deadline: float, once: Callable[[Connection], Awaitable[T]]
) -> T:
    """Do all of it, and all of it again if others or the server got in the way.

    Whoever uses the store takes its locks in another order than who makes its functions anew, so
    that now and then one of them is told to begin again.
    """
    end = runtime.monotonic() + deadline
    failures = puzzles = 0
    while True:
        async with _connected(address, deadline) as connection:
            try:
                return await once(connection)
            except errors.LockNotAvailable:
                raise
            except Error as error:
                puzzles += faults.puzzles(error)
                failures += 1
                pause = _BACKOFF.after(failures)
                late = runtime.monotonic() + pause > end
                if late or puzzles >= _MOST_PUZZLES or not faults.may_pass(error):
                    raise
        await runtime.sleep(pause)


@asynccontextmanager
async def _connected(address: Address, deadline: float) -> AsyncGenerator[Connection]:
    """Return a connection to a server that is new enough; errors come out explained."""
    connection = await connect_patiently(address, min(deadline, PATIENCE))
    try:
        server.check_version(connection, address)
        yield connection
    except LamplighterError:
        raise
    except errors.LockNotAvailable as error:
        raise StoreBusy(
            f"the store at {address.shown} is in use and could not be changed in "
            f"{_LOCK_SECONDS:g} s; nothing was changed",
            hint="wait for backups and other long transactions to end (`lamplighter doctor` names "
            "them), then try again",
            value=address.shown,
        ) from error
    except Error as error:
        raise faults.explain(error, address.shown) from error
    finally:
        connection.let_go()
