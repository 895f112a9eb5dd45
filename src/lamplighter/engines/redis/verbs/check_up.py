"""check_up: look at the server, its settings and the store, and say what is wrong.

Facts are read first; each check then judges them for itself. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.engines.redis import installer, server
from lamplighter.engines.redis.address import Address, Durability
from lamplighter.engines.redis.connection import Connection
from lamplighter.model.errors import LamplighterError
from lamplighter.port.checkup import Checkup, Finding, note, ok, problem, warning

NAME = "redis"
_LOOKS = 3
_ROOM = 0.8
"""The share of its memory from which on a server is called nearly full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All that the checks judge."""

    address: Address
    host: server.Facts
    state: installer.State
    refusal: tuple[str, str] | None
    skew_ms: float
    doubt_ms: float
    lease_ms: int


async def check_up(address: Address, deadline: float, lease_ms: int) -> Checkup:
    """Read all facts, and let each check judge them."""
    async with installer.connected(address, deadline) as connection:
        host = await server.read(connection)
        if server.too_old(host, address) is not None:
            return Checkup(engine=NAME, findings=(_version_of(host, address),))
        state, refusal = await _state(connection, address)
        skew, doubt = await _skew(connection)
    found = _Found(
        address=address,
        host=host,
        state=state,
        refusal=refusal,
        skew_ms=skew,
        doubt_ms=doubt,
        lease_ms=lease_ms,
    )
    return Checkup(
        engine=NAME,
        findings=tuple(check(found) for check in CHECKS),
        survives=_survives(host),
    )


async def _state(
    connection: Connection, address: Address
) -> tuple[installer.State, tuple[str, str] | None]:
    """Give what is under the prefix, or why the store would not be opened."""
    try:
        return await installer.known(connection, address), None
    except LamplighterError as error:
        return installer.State(0, 1), (error.cause, error.hint)


async def _skew(connection: Connection) -> tuple[float, float]:
    """Give how far the server's clock is ahead of ours, and how far off that may be."""
    best = (0.0, float("inf"))
    for _ in range(_LOOKS):
        began, tick = runtime.now_ms(), runtime.monotonic()
        seconds, micros = await connection.command("TIME")
        half = (runtime.monotonic() - tick) * 1000 / 2
        if half < best[1]:
            best = (int(seconds) * 1000 + int(micros) / 1000 - began - half, half)
    return best


# ── the checks ───────────────────────────────────────────────────────────────────────────────


def _version(found: _Found) -> Finding:
    return _version_of(found.host, found.address)


def _version_of(host: server.Facts, address: Address) -> Finding:
    refusal = server.too_old(host, address)
    if refusal is not None:
        return problem("version", refusal.cause, refusal.hint)
    return ok("version", f"the server is {host}")


def _role(found: _Found) -> Finding:
    for refusal in (
        server.alone(found.host, found.address),
        server.unwritable(found.host, found.address),
    ):
        if refusal is not None:
            return problem("role", refusal.cause, refusal.hint)
    return ok("role", "the server takes writes and keeps all keys")


def _memory(found: _Found) -> Finding:
    host = found.host
    if not host.memory_limit:
        return note(
            "memory",
            "the server may use all memory of its machine (maxmemory is 0)",
            "set maxmemory to what it may use, and maxmemory-policy to noeviction",
        )
    if host.evicts != "noeviction":
        return problem(
            "memory",
            f"the server drops keys when its memory is used up (maxmemory-policy {host.evicts})",
            "set maxmemory-policy noeviction",
        )
    share = host.memory_used / host.memory_limit
    if share >= _ROOM:
        return warning(
            "memory",
            f"{share:.0%} of the server's memory are used; when it is full, jobs are refused",
            "raise maxmemory, or shorten the retention of finished jobs",
        )
    return ok("memory", f"{share:.0%} of the server's memory are used, and nothing is dropped")


def _durability(found: _Found) -> Finding:
    refusal = server.forgetful(found.host, found.address)
    if refusal is not None:
        return problem("durability", refusal.cause, refusal.hint)
    if found.address.durability is Durability.NONE:
        return note("durability", "the url accepts that jobs are lost: durability=none")
    if found.host.flush is None:
        return note(
            "durability",
            f"the server hides its settings: durability={found.address.durability} is unverified",
            "make sure that appendfsync is what the url says",
        )
    return ok("durability", f"the server logs every write, appendfsync {found.host.flush}")


def _disk(found: _Found) -> Finding:
    if found.host.writes:
        return ok("disk", "the last write to the server's disk went well")
    return problem(
        "disk",
        "the server could not write to its disk",
        "free some space there, and see the server's log",
    )


def _clock(found: _Found) -> Finding:
    """A clock that differs shows wrong times; the store's own clock decides."""
    skew, doubt = found.skew_ms, found.doubt_ms
    text = f"the server's clock differs from ours by {skew:.0f} ms (give or take {doubt:.0f} ms)"
    if abs(skew) - doubt > found.lease_ms / 4:
        return warning("clock", text, "let both machines follow a time server (NTP)")
    return ok("clock", text)


def _schema(found: _Found) -> Finding:
    if found.refusal is not None:
        return problem("schema", *found.refusal)
    state = found.state
    if not state.version:
        return problem(
            "schema",
            f"there is no store at {found.address.shown} yet",
            "run: lamplighter migrate --url URL",
        )
    parts = "one shard" if state.shards == 1 else f"{state.shards} shards"
    return ok("schema", f"the store has version {state.version} and {parts}")


CHECKS: tuple[Callable[[_Found], Finding], ...] = (
    _version,
    _role,
    _memory,
    _durability,
    _disk,
    _clock,
    _schema,
)


def _survives(host: server.Facts) -> Mapping[str, str]:
    if host.log:
        process = "yes"
        machine = {
            "always": "yes",
            "everysec": "all but the last second or two",
            "no": "all but up to half a minute",
            None: "unknown: the server hides appendfsync",
        }.get(host.flush, "unknown")
    elif host.snapshots:
        process = machine = "only what the last snapshot has"
    else:
        process = machine = "no"
    return {
        "the client's machine fails": "yes",
        "the server is killed": process,
        "the server's machine fails": machine,
        "the server's disk is lost, or a failover": "only what had reached a replica",
    }
