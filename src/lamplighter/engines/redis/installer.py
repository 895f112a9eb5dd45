"""Whether a server holds our store, and how it gets one.

A store is an entry in its first shard (that it is ours, its version, and into how many shards it is
divided, which never changes) and a mark in every shard, different for each store that is made, by
which running processes see that theirs is still there. Scripts need no installing: the server gets
them as they are used.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.backoff import Backoff
from lamplighter.engines.redis import acl, faults, scripts, server
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.connection import Connection, connect
from lamplighter.engines.redis.faults import Lost
from lamplighter.engines.redis.keys import shard_prefix
from lamplighter.engines.redis.wire import ProtocolError, ReplyError
from lamplighter.model.errors import (
    InvalidUrl,
    StoreError,
    StoreForbidden,
    StoreForeign,
    StoreUnreachable,
)
from lamplighter.port.layouts import Layouts

LAYOUTS = Layouts(first=2, newest=2)
PATIENCE = 5.0
_BACKOFF = Backoff(0.05, 1.0)
_PAGE = 1_000
_MOST_PAGES = 20


@dataclass(frozen=True, slots=True)
class State:
    """What is under the prefix: the version, 0 for nothing, and the number of shards."""

    version: int
    shards: int
    mark: str = ""
    """Tells this store from one that was made in its place."""


async def prepare(
    address: Address,
    deadline: float,
    *,
    create: bool = True,
    clock_ms: Callable[[], int] | None = None,
) -> tuple[int, State, server.Facts]:
    """Check that the store is ours and of this version; make one where none is.

    Gives the version before, what there is now, and what the server says of itself. Without
    ``create`` a store that is not there is refused.
    """
    async with connected(address, deadline) as connection:
        facts = await server.read(connection)
        server.check(facts, address)
        refusal = await lacking(connection, address)
        if refusal is not None:
            raise refusal
        state = await known(connection, address)
        if state.version:
            return state.version, state, facts
        if not create:
            raise StoreUnreachable(
                f"there is no store at {address.shown} yet",
                hint="name another one with --url or LAMPLIGHTER_URL, or run: lamplighter migrate",
                value=address.shown,
            )
        await _check_empty(connection, address)
        now = None if clock_ms is None else clock_ms()
        return 0, _state(await _open(connection, address, "make", now), address), facts


async def known(connection: Connection, address: Address) -> State:
    """Return what is there, if this program may use it."""
    return _state(await _open(connection, address, "look"), address)


async def lacking(connection: Connection, address: Address) -> StoreError | None:
    """Say which right the user lacks of those that scripts need, with the line that gives it.

    A script that is refused a command in its middle has done the half before it, so this is asked
    before the first one runs.
    """
    text = scripts.script("rights").text
    prefix = shard_prefix(address.prefix, 0)
    wanted = acl.needed(address)
    said = await connection.command("EVAL", text, 1, prefix, "", *wanted)
    words = [word.decode() for word in said]
    unknown = [name for name, why in zip(words[::2], words[1::2], strict=True) if why == "unknown"]
    if unknown:
        return StoreForbidden(
            f"the server at {address.shown} does not know {', '.join(unknown)}",
            hint="use Redis 7.0, Valkey 7.2 or newer, and take these commands out of "
            "`rename-command` in the server's configuration",
            value=unknown[0],
        )
    refused = words[::2]
    if not refused:
        return None
    rights = " ".join(f"+{name.lower()}" for name in refused)
    return faults.forbidden(
        address, f"run {', '.join(refused)}", f"{acl.key_pattern(address)} {rights}"
    )


@asynccontextmanager
async def connected(address: Address, deadline: float) -> AsyncGenerator[Connection]:
    """Return a connection to a server that may just be starting; errors come out explained."""
    try:
        connection = await _patiently(address, min(deadline, PATIENCE))
        try:
            yield connection
        finally:
            connection.let_go()
    except (Lost, ProtocolError, ReplyError, OSError) as error:
        raise faults.explain(error, address) from error


async def _patiently(address: Address, seconds: float) -> Connection:
    end = runtime.monotonic() + seconds
    failures = 0
    while True:
        try:
            connection = await connect(address, seconds, seconds)
            try:
                await connection.command("PING")  # a server that is loading says so
            except BaseException:
                connection.let_go()
                raise
            return connection
        except TimeoutError as error:
            raise faults.silent(address, seconds) from error
        except (Lost, ProtocolError, ReplyError, OSError) as error:
            failures += 1
            pause = _BACKOFF.after(failures)
            if not faults.may_pass(error) or runtime.monotonic() + pause > end:
                raise
        await runtime.sleep(pause)


async def _open(
    connection: Connection, address: Address, wish: str, now: int | None = None
) -> list[bytes]:
    prefix = shard_prefix(address.prefix, 0)
    clock = "" if now is None else str(now)
    text = scripts.script("open").text
    return await connection.command(
        "EVAL", text, 1, prefix, clock, wish, LAYOUTS.newest, address.shards or 1
    )


def _state(said: list[bytes], address: Address) -> State:
    """Read what the script found, and refuse what this program must not use."""
    word, *rest = [one.decode("utf-8", "replace") for one in said]
    if word == "none":
        return State(0, address.shards or 1)
    if word == "foreign":
        raise _foreign(rest[0], address)
    if word == "torn":
        raise faults.torn(address, rest[0])
    version, shards, mark = rest
    if not (version.isdecimal() and shards.isdecimal()):
        raise _foreign(f"{shard_prefix(address.prefix, 0)}meta", address)
    LAYOUTS.check(
        int(version),
        store=f"the store at {address.shown}",
        value=address.shown,
        migrate=False,
        remedy="lamplighter migrate",
    )
    if address.shards not in (None, int(shards)):
        raise InvalidUrl(
            f"the url asks for shards={address.shards}, but the store at {address.shown} was made "
            f"with {shards}, and that cannot be changed",
            hint=f"write shards={shards} or leave it out; a new store needs another prefix",
            value=address.shards,
        )
    if not mark:
        raise _foreign(f"{shard_prefix(address.prefix, 0)}meta", address)
    return State(int(version), int(shards), mark)


async def _check_empty(connection: Connection, address: Address) -> None:
    """Refuse a prefix that others use, as far as a few looks can tell.

    Only before a store is made: to go through all keys of a large server would take long. A user
    who may not see the names of others' keys cannot look; the script that makes the store looks at
    those that every store in use has.
    """
    ours = re.compile(rb"\{%b:\d+\}:" % re.escape(address.prefix.encode()))
    cursor: bytes = b"0"
    for _ in range(_MOST_PAGES):
        try:
            cursor, keys = await connection.command(
                "SCAN", cursor, "MATCH", f"{{{address.prefix}:*", "COUNT", _PAGE
            )
        except ReplyError as error:
            if faults.code_of(error) != "NOPERM":
                raise
            return
        # A prefix may be the beginning of another one.
        keys = [key for key in keys if ours.match(key)]
        if keys:
            # Another process may just have made the store.
            if (await known(connection, address)).version:
                return
            raise _foreign(keys[0].decode("utf-8", "replace"), address)
        if cursor == b"0":
            return


def _foreign(key: str, address: Address) -> StoreForeign:
    return StoreForeign(
        f"the key `{key}` at {address.shown} is in the place of a store, but there is none",
        hint="name another prefix in the url, for instance ?prefix=jobs; if a store was emptied "
        "here while it was in use, stop all its processes and delete the rest",
        value=key,
    )
