"""check_up: look at the server, its settings and the store, and say what is wrong.

Facts are read first; each check then judges them for itself. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lamplighter import runtime
from lamplighter.engines.redis import installer, server
from lamplighter.engines.redis.address import Address, Durability
from lamplighter.engines.redis.admission import SHARE
from lamplighter.engines.redis.audit import Audit, audit_at_work
from lamplighter.engines.redis.connection import Connection
from lamplighter.engines.redis.promises import DECLARED
from lamplighter.engines.redis.server import Facts, Replica
from lamplighter.engines.redis.transport import Transport
from lamplighter.engines.redis.verbs.due_schedules import overdue_schedules
from lamplighter.model.errors import LamplighterError, StoreError
from lamplighter.port.checkup import (
    Checkup,
    Finding,
    Overdue,
    note,
    ok,
    problem,
    schedules,
    warning,
)

NAME = "redis"
_LOOKS = 5
_AUDIT_SECONDS = 5.0
_SLOW_MS = 50.0
_STILL_MS = 1_000.0
_SILENT_SECONDS = 10
_FAR_BYTES = 10_000_000
_MOST_FAULTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All that the checks judge."""

    address: Address
    host: Facts
    lacking: tuple[str, str] | None
    """Why the user cannot work, and what to do about it."""
    state: installer.State
    refusal: tuple[str, str] | None
    """Why the store would not be opened."""
    skew_ms: float
    trip_ms: float
    lease_ms: int
    indexes: Audit | None
    """None: there is no store to look through."""
    overdue: Overdue | None


async def check_up(address: Address, deadline: float, lease_ms: int) -> Checkup:
    """Read all facts, and let each check judge them."""
    async with installer.connected(address, deadline) as connection:
        host = await server.read(connection)
        if server.too_old(host, address) is not None:
            return Checkup(engine=NAME, findings=(_version_of(host, address),))
        lacking = _told(await installer.lacking(connection, address))
        state, refusal = await _state(connection, address)
        skew, trip = await _look(connection)
    readable = state.version and lacking is None and refusal is None
    indexes, overdue = await _look_through(address, deadline, state) if readable else (None, None)
    found = _Found(
        address=address,
        host=host,
        lacking=lacking,
        state=state,
        refusal=refusal,
        skew_ms=skew,
        trip_ms=trip,
        lease_ms=lease_ms,
        indexes=indexes,
        overdue=overdue,
    )
    return Checkup(
        engine=NAME,
        findings=tuple(check(found) for check in CHECKS),
        survives=_survives(host, address),
    )


def _told(error: StoreError | None) -> tuple[str, str] | None:
    return None if error is None else (error.cause, error.hint)


async def _state(
    connection: Connection, address: Address
) -> tuple[installer.State, tuple[str, str] | None]:
    """Return what is under the prefix, or why the store would not be opened."""
    try:
        return await installer.known(connection, address), None
    except LamplighterError as error:
        return installer.State(0, 1), (error.cause, error.hint)


async def _look(connection: Connection) -> tuple[float, float]:
    """Return how far the server's clock is ahead of ours, and how long an answer takes.

    Both of the quickest of a few answers: what is slower says more about us.
    """
    best = (0.0, float("inf"))
    for _ in range(_LOOKS):
        began, tick = runtime.now_ms(), runtime.monotonic()
        seconds, micros = await connection.command("TIME")
        trip = (runtime.monotonic() - tick) * 1000
        if trip < best[1]:
            best = (int(seconds) * 1000 + int(micros) / 1000 - began - trip / 2, trip)
    return best


async def _look_through(
    address: Address, deadline: float, state: installer.State
) -> tuple[Audit, Overdue]:
    transport = Transport(address, deadline)
    transport.divide(state.shards, state.mark)
    try:
        overdue = await overdue_schedules(transport)
        return await audit_at_work(transport, _AUDIT_SECONDS), overdue
    finally:
        await transport.close()


# ── the server ───────────────────────────────────────────────────────────────────────────────


def _version(found: _Found) -> Finding:
    return _version_of(found.host, found.address)


def _version_of(host: Facts, address: Address) -> Finding:
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


def _rights(found: _Found) -> Finding:
    if found.lacking is not None:
        return problem("rights", *found.lacking)
    user = found.address.user or "default"
    return ok("rights", f"the user `{user}` may run all commands that are needed")


def _memory(found: _Found) -> Finding:
    memory = found.host.memory
    refusal = server.evicting(found.host, found.address)
    if refusal is not None:
        return problem("memory", refusal.cause, refusal.hint)
    if not memory.limit:
        return note(
            "memory",
            f"{_size(memory.used)} are used, and the server may use all that its machine has "
            "(maxmemory is 0): when that is used up, the system ends the server",
            "set maxmemory to less than the machine has, with room for a copy while it saves",
        )
    text = f"{memory.share:.0%} of {_size(memory.limit)} are used"
    if memory.share >= SHARE:
        return warning(
            "memory",
            f"{text}: from {SHARE:.0%} on, new jobs are refused",
            "raise maxmemory, or shorten the retention of finished jobs",
        )
    room = memory.limit * SHARE - memory.used
    return ok("memory", f"{text}; {_size(room)} more, and new jobs are refused")


def _latency(found: _Found) -> Finding:
    host, trip = found.host, found.trip_ms
    text = f"an answer takes {trip:.1f} ms"
    if host.fork_ms > _STILL_MS:
        return warning(
            "latency",
            f"{text}; when it last began to save, the server stood still for {host.fork_ms:.0f} ms",
            "give it less memory to copy, or switch off transparent huge pages on its machine",
        )
    if trip > _SLOW_MS:
        return warning(
            "latency",
            f"{text}: each call waits for that",
            "look at SLOWLOG GET, the load of the server and the network between",
        )
    return ok("latency", text)


def _clock(found: _Found) -> Finding:
    """A clock that differs shows wrong times; the store's own clock decides."""
    skew, doubt = found.skew_ms, found.trip_ms / 2
    text = f"the server's clock differs from ours by {skew:.0f} ms (give or take {doubt:.0f} ms)"
    if abs(skew) - doubt > found.lease_ms / 4:
        return warning("clock", text, "let both machines follow a time server (NTP)")
    return ok("clock", text)


# ── what may be lost ─────────────────────────────────────────────────────────────────────────


def _durability(found: _Found) -> Finding:
    host, declared = found.host, found.address.durability
    refusal = server.forgetful(host, found.address)
    if refusal is not None:
        return problem("durability", refusal.cause, refusal.hint)
    loss = f"loss: {DECLARED[declared].loss_window}"
    if declared is Durability.NONE:
        return note("durability", f"the url accepts that jobs are lost; {loss}")
    if host.flush is None:
        return note(
            "durability",
            f"unverified: the server hides its settings, so what the url says is believed; {loss}",
            "make sure that appendfsync is as the url wants it: run doctor once with the address "
            "of an administrator (+config|get would let this user read the server's passwords)",
        )
    return ok("durability", f"verified: appendonly yes, appendfsync {host.flush}; {loss}")


def _disk(found: _Found) -> Finding:
    host = found.host
    for fine, what in (
        (host.log_written, "the last write to its log (aof_last_write_status)"),
        (host.snapshot_written, "its last snapshot or new log (rdb_last_bgsave_status)"),
    ):
        if not fine:
            return problem(
                "disk",
                f"the server could not write {what}",
                "free some space on its disk, and see its log",
            )
    if host.flushes_late:
        return warning(
            "disk",
            f"the disk was too slow for the server {host.flushes_late} times since it started "
            "(aof_delayed_fsync): a write then waited, or a crash would have lost more",
            "give it a faster disk, or one of its own",
        )
    return ok("disk", "the last writes to the server's disk went well")


def _replicas(found: _Found) -> Finding:
    replicas, address = found.host.replicas, found.address
    online = sum(one.online for one in replicas)
    if address.durability is Durability.REPLICATED and online < address.replicas:
        return problem(
            "replicas",
            f"{online} are connected, and {address.replicas} must confirm each job: nothing is "
            "acknowledged",
            "start them (REPLICAOF), or write replicas=… in the url",
        )
    if not replicas:
        return note("replicas", "none connected: if the server's disk is lost, so are the jobs")
    for one in replicas:
        if not one.online or one.silent > _SILENT_SECONDS or one.behind > _FAR_BYTES:
            return warning(
                "replicas",
                f"{_follower(one)}: a failover to it now would lose that",
                "look at the replica's log and the network between",
            )
    return ok("replicas", ", ".join(map(_follower, replicas)))


def _follower(one: Replica) -> str:
    state = "online" if one.online else "not in step yet"
    return f"`{one.name}` is {state}, {one.behind:,} bytes behind, heard {one.silent} s ago"


# ── the store ────────────────────────────────────────────────────────────────────────────────


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


def _index(found: _Found) -> Finding:
    indexes = found.indexes
    if indexes is None:
        return note("index", "not looked at: the store cannot be opened")
    looked = f"{indexes.jobs:,} jobs looked at" + ("" if indexes.whole else ", not all: too many")
    if not indexes.faults:
        return ok("index", f"each is where it belongs; {looked}")
    more = len(indexes.faults) - _MOST_FAULTS
    texts = [*indexes.faults[:_MOST_FAULTS], *([f"{more} more"] if more > 0 else [])]
    return problem(
        "index",
        f"{'; '.join(texts)} ({looked})",
        "somebody else wrote or deleted keys of the store, or a script was stopped half way: see "
        "that only we do (ACL), and move to a new store (prefix=… in the url) or to a backup; "
        "jobs that are named can be cancelled and purged",
    )


def _schedules(found: _Found) -> Finding:
    return schedules(found.overdue)


CHECKS: tuple[Callable[[_Found], Finding], ...] = (
    _version,
    _role,
    _rights,
    _memory,
    _latency,
    _clock,
    _durability,
    _disk,
    _replicas,
    _schema,
    _index,
    _schedules,
)


def _survives(host: Facts, address: Address) -> Mapping[str, str]:
    if host.log:
        process = "yes"
        machine = {
            "always": "yes",
            "everysec": "all but the last second or two",
            "no": "all but up to half a minute",
            None: "unverified: the server hides appendfsync",
        }.get(host.flush, "unverified")
    elif host.snapshots:
        process = machine = "only what the last snapshot has"
    else:
        process = machine = "no"
    return {
        "the client's machine fails": "yes",
        "the server is killed": process,
        "the server's machine fails": machine,
        "the server's disk is lost, or a failover": _failover(host, address),
    }


def _failover(host: Facts, address: Address) -> str:
    if address.durability is Durability.REPLICATED:
        return f"yes, to one of the replicas that have confirmed it ({address.replicas} must)"
    if not host.replicas:
        return "no: there is no replica"
    told = ", ".join(f"`{one.name}`: {one.behind:,} bytes behind" for one in host.replicas)
    return f"only what had reached a replica; at this moment {told}"


def _size(size: float) -> str:
    """Write a number of bytes for people."""
    for unit in ("B", "kB", "MB"):
        if abs(size) < 1_000:
            return f"{size:.0f} {unit}"
        size /= 1_000
    return f"{size:,.1f} GB"
