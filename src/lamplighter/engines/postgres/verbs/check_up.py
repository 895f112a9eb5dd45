"""check_up: look at the server, its settings and the store, and say what is wrong.

Facts are read in a few statements; each check then judges them for itself. Nothing is changed.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from psycopg import Error, sql

from lamplighter import runtime
from lamplighter.engines.postgres import faults, installer, server, statements, strangers
from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.checkup import durability, facts, session, store, upkeep
from lamplighter.engines.postgres.checkup.facts import Facts
from lamplighter.engines.postgres.connection import (
    Connection,
    connect,
    connect_patiently,
    guarded,
)
from lamplighter.model.errors import StoreError, StoreReadOnly
from lamplighter.port.checkup import Checkup, Finding

NAME = "postgresql"
CHECKS = (*session.CHECKS, *durability.CHECKS, *upkeep.CHECKS, store.schema)
_LOOKS = 3
_HEAR_SECONDS = 1.0
_CHANNEL = "lamplighter_doctor"


async def check_up(address: Address, deadline: float, lease_ms: int) -> Checkup:
    """Read all facts, and let each check judge them."""
    connection = await _reach(address, min(deadline, installer.PATIENCE))
    try:
        if connection.pgconn.server_version < server.MINIMUM * 10_000:
            old = Facts(host=_old(connection))
            return Checkup(engine=NAME, findings=(session.version(old),))
        async with asyncio.timeout(deadline):
            found = await _read(connection, address, lease_ms)
    except Error as error:
        raise faults.explain(error, address.shown) from error
    finally:
        connection.let_go()
    return Checkup(
        engine=NAME,
        findings=judge(found),
        survives=durability.survives(found),
    )


def judge(found: Facts) -> tuple[Finding, ...]:
    """Let each check judge; those of the store itself only where there is one."""
    checks = (*CHECKS, *store.CHECKS) if found.version else CHECKS
    return tuple(check(found) for check in checks)


async def _reach(address: Address, seconds: float) -> Connection:
    """Connect, to a server that only reads if there is no other: it is looked at, too."""
    try:
        return await connect_patiently(address, seconds)
    except StoreReadOnly:
        any_server = {**address.parameters, "target_session_attrs": "any"}
        return await connect_patiently(replace(address, parameters=any_server), seconds)


async def _read(connection: Connection, address: Address, lease_ms: int) -> Facts:
    async with guarded(connection):
        host = await server.read(connection, address.schema)
        known = await facts.read(connection, address.schema)
        skew, doubt = await _skew(connection)
        state, refusal = await _state(connection, address, host)
        current = state.version == statements.layouts().newest
        overdue = await facts.read_overdue(connection, address.schema) if current else None
        stranger = await strangers.find(connection, address.schema, host.owner or host.user)
    between, pooled = await _poolers(connection, address)
    return Facts(
        **known,
        shown=address.shown,
        schema=address.schema,
        durable=address.durable,
        lease_ms=lease_ms,
        host=host,
        version=state.version,
        newest=statements.layouts().newest,
        current=installer.up_to_date(state),
        refusal=refusal,
        overdue=overdue,
        stranger=stranger,
        skew_ms=skew,
        doubt_ms=doubt,
        between=between,
        pooled=pooled,
        # Where sessions are lent, an ear would be left in somebody else's.
        heard=await _hears(connection, address, host) if not pooled else _deaf(address),
    )


async def _state(
    connection: Connection, address: Address, host: server.Facts
) -> tuple[installer.State, tuple[str, str] | None]:
    """Return what the schema holds, or why the store would not be opened."""
    try:
        async with connection.transaction():
            return await installer.known(connection, address, host, migrate=False), None
    except StoreError as error:
        return installer.State(0), (error.cause, error.hint)
    except Error as error:
        explained = faults.explain(error, address.shown)
        return installer.State(0), (explained.cause, explained.hint)


async def _skew(connection: Connection) -> tuple[float, float]:
    """Return how far the server's clock is ahead of ours, and how far off that may be."""
    best = (0.0, float("inf"))
    for _ in range(_LOOKS):
        began, tick = runtime.now_ms(), runtime.monotonic()
        cursor = await connection.execute(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8"
        )
        row: Any = await cursor.fetchone()
        half = (runtime.monotonic() - tick) * 1000 / 2
        if half < best[1]:
            best = (row[0] - began - half, half)
    return best


async def _poolers(connection: Connection, address: Address) -> tuple[bool, bool]:
    """Tell whether somebody stands between us and the server, and lends our session to others.

    Who does gives another number for the session than the server itself, and, while another
    connection is busy, our next transaction gets another session, or the other one got ours.
    """
    first = await _session(connection)
    between = first != connection.pgconn.backend_pid
    if not between:
        return False, False
    try:
        other = await connect(address)
    except Error:
        return True, False
    try:
        async with other.transaction():
            theirs = await _session(other)
            return True, theirs == first or await _session(connection) != first
    finally:
        other.let_go()


async def _session(connection: Connection) -> int:
    cursor = await connection.execute("SELECT pg_catalog.pg_backend_pid()")
    row: Any = await cursor.fetchone()
    return row[0]


async def _hears(connection: Connection, address: Address, host: server.Facts) -> bool | None:
    """Listen, let another connection speak, and tell whether it was heard."""
    if not address.listen or host.standby:
        return None
    word = f"{runtime.random_bits(64):x}"
    channel = f"{_CHANNEL}_{word}"
    name = sql.Identifier(channel)
    try:
        await connection.execute(sql.SQL("LISTEN {}").format(name))
        speaker = await connect(address)
        try:
            await speaker.execute("SELECT pg_catalog.pg_notify(%s, %s)", (channel, word))
        finally:
            speaker.let_go()
        arrived = False
        async for heard in connection.notifies(timeout=_HEAR_SECONDS, stop_after=1):
            arrived = arrived or heard.payload == word
        await connection.execute(sql.SQL("UNLISTEN {}").format(name))
    except Error:
        return False
    return arrived


def _deaf(address: Address) -> bool | None:
    return False if address.listen else None


def _old(connection: Connection) -> server.Facts:
    number = connection.pgconn.server_version
    said = connection.info.parameter_status("server_version") or str(number)
    return server.Facts(number=number, version=said)
