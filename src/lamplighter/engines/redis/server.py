"""What a server says of itself, and whether it can keep a store."""

from __future__ import annotations

from dataclasses import dataclass, field

from lamplighter.engines.redis.address import Address, Durability
from lamplighter.engines.redis.connection import Connection
from lamplighter.engines.redis.wire import ReplyError
from lamplighter.model.errors import StoreError, StoreReadOnly, StoreUnreachable

OLDEST_REDIS = (7, 0)
OLDEST_VALKEY = (7, 2)
_SECTIONS = ("server", "memory", "persistence", "stats", "replication", "cluster")
_SETTINGS = ("appendfsync", "no-appendfsync-on-rewrite", "save")
_KEEP = "write the same into the server's configuration (CONFIG REWRITE)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """Somebody who follows the server."""

    name: str
    online: bool
    behind: int
    """Bytes of changes that it has not confirmed."""
    silent: int
    """Seconds since it was last heard of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much a server uses of what it may use."""

    limit: int = 0
    """0: none."""
    used: int = 0
    """Without what it does not count itself: the buffers of replicas and of the log."""

    @property
    def share(self) -> float:
        """How much of the limit is used; 0 if there is none."""
        return self.used / self.limit if self.limit else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What matters to us of all a server says. What it does not say is None."""

    program: str = "Redis"
    version: tuple[int, int, int] = (0, 0, 0)
    replica: bool = False
    cluster: bool = False
    memory: Memory = field(default_factory=Memory)
    evicts: str = "noeviction"
    """What it does when its memory is used up."""
    log: bool = False
    """It writes a log of all changes (AOF)."""
    log_written: bool = True
    """The last write to it went well."""
    flush: str | None = None
    """When the log goes to the disk: always, everysec or no."""
    flush_rests: bool | None = None
    """It does not go to the disk while the server writes a snapshot or a new log."""
    flushes_late: int = 0
    """How often the disk was too slow for that."""
    snapshots: bool | None = None
    """It saves snapshots (RDB) by itself."""
    snapshot_written: bool = True
    """The last one, or the last new log, went well."""
    fork_ms: float = 0.0
    """How long the server stood still when it last began one."""
    replicas: tuple[Replica, ...] = ()

    def __str__(self) -> str:
        return f"{self.program} {'.'.join(map(str, self.version))}"


async def read(connection: Connection) -> Facts:
    """Ask the server; settings that a user may not ask for stay unknown."""
    said = parsed(await connection.command("INFO", *_SECTIONS))
    settings = await _settings(connection)
    valkey = "valkey_version" in said
    rests = settings.get("no-appendfsync-on-rewrite")
    return Facts(
        program="Valkey" if valkey else "Redis",
        version=_version(said.get("valkey_version") or said.get("redis_version", "")),
        replica=said.get("role") == "slave",
        cluster=said.get("cluster_enabled") == "1",
        memory=memory_of(said),
        evicts=said.get("maxmemory_policy", "noeviction"),
        log=said.get("aof_enabled") == "1",
        log_written=said.get("aof_last_write_status", "ok") == "ok",
        flush=settings.get("appendfsync"),
        flush_rests=None if rests is None else rests == "yes",
        flushes_late=_number(said.get("aof_delayed_fsync")),
        snapshots=settings["save"] != "" if "save" in settings else None,
        snapshot_written=all(
            said.get(name, "ok") == "ok"
            for name in ("rdb_last_bgsave_status", "aof_last_bgrewrite_status")
        ),
        fork_ms=_number(said.get("latest_fork_usec")) / 1000,
        replicas=_replicas(said),
    )


def parsed(info: bytes) -> dict[str, str]:
    """Read what INFO says: one `name:value` a line."""
    lines = info.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


def memory_of(said: dict[str, str]) -> Memory:
    """Return what INFO says of the memory, as the server compares it with its limit."""
    used = _number(said.get("used_memory")) - _number(said.get("mem_not_counted_for_evict"))
    return Memory(limit=_number(said.get("maxmemory")), used=max(0, used))


def _replicas(said: dict[str, str]) -> tuple[Replica, ...]:
    """Read lines as `slave0:ip=10.0.0.2,port=6379,state=online,offset=815,lag=0`."""
    end = _number(said.get("master_repl_offset"))
    found: list[Replica] = []
    for number in range(_number(said.get("connected_slaves"))):
        parts = (part.partition("=") for part in said.get(f"slave{number}", "").split(","))
        words = {name: value for name, _, value in parts}
        found.append(
            Replica(
                name=f"{words.get('ip', '?')}:{words.get('port', '?')}",
                online=words.get("state") == "online",
                behind=max(0, end - _number(words.get("offset"))),
                silent=_number(words.get("lag")),
            )
        )
    return tuple(found)


async def _settings(connection: Connection) -> dict[str, str]:
    try:
        found = await connection.command("CONFIG", "GET", *_SETTINGS)
    except ReplyError:
        return {}  # hidden, as hosts of servers do
    words = [word.decode() for word in found]
    return dict(zip(words[::2], words[1::2], strict=False))


# ── what is refused ──────────────────────────────────────────────────────────────────────────


def check(facts: Facts, address: Address) -> None:
    """Refuse a server that cannot keep a store, or not as well as the address asks for."""
    for refusal in (too_old, alone, unwritable, evicting, forgetful):
        found = refusal(facts, address)
        if found is not None:
            raise found


def too_old(facts: Facts, address: Address) -> StoreError | None:
    """Say that scripts would not run."""
    oldest = OLDEST_VALKEY if facts.program == "Valkey" else OLDEST_REDIS
    if facts.version[:2] >= oldest:
        return None
    return StoreUnreachable(
        f"the server at {address.shown} is {facts}; {facts.program} {oldest[0]}.{oldest[1]} or "
        "newer is needed",
        hint="update the server",
        value=str(facts),
    )


def alone(facts: Facts, address: Address) -> StoreError | None:
    """Say that the server is only a part of something."""
    if not facts.cluster:
        return None
    return StoreUnreachable(
        f"the server at {address.shown} is one of a cluster, which keeps only some of the keys",
        hint="use a server of its own (cluster-enabled no), or a primary with replicas",
        value=address.shown,
    )


def unwritable(facts: Facts, address: Address) -> StoreError | None:
    """Say why nothing can be written."""
    if not facts.replica:
        return None
    return StoreReadOnly(
        f"the server at {address.shown} is a replica, which only reads",
        hint="name the primary server",
        value=address.shown,
    )


def evicting(facts: Facts, address: Address) -> StoreError | None:
    """Say that the server would drop keys: no durability allows for that.

    A store without some of its keys is not one that has lost jobs; it is a broken one.
    """
    if facts.evicts == "noeviction":
        return None
    when = "when its memory is used up" if facts.memory.limit else "as soon as maxmemory is set"
    return StoreUnreachable(
        f"the server at {address.shown} runs with maxmemory-policy={facts.evicts}: {when}, it "
        "drops keys, jobs and their order among them",
        hint=f"say CONFIG SET maxmemory-policy noeviction, and {_KEEP}",
        value=f"maxmemory-policy={facts.evicts}",
    )


def forgetful(facts: Facts, address: Address) -> StoreError | None:
    """Say which setting lets the server forget what it has acknowledged."""
    if address.durability is Durability.NONE:
        return None
    if not facts.log:
        setting, remedy = "appendonly=no", "appendonly yes"
        risk = "a stop of the server loses the jobs since its last snapshot"
    elif facts.flush == "no":
        setting, remedy = "appendfsync=no", f"appendfsync {_flush(address)}"
        risk = "a crash of the machine loses up to half a minute"
    elif address.durability is Durability.FSYNC and facts.flush == "everysec":
        setting, remedy = "appendfsync=everysec", "appendfsync always"
        risk = "a crash of the machine loses the last second or two"
    elif facts.flush_rests:
        setting = "no-appendfsync-on-rewrite=yes"
        remedy = "no-appendfsync-on-rewrite no"
        risk = "while it writes a new log, a crash of the machine loses up to half a minute"
    else:
        return None
    return StoreUnreachable(
        f"the url asks for durability={address.durability}, but the server at {address.shown} runs "
        f"with {setting}: {risk}",
        hint=f"say CONFIG SET {remedy}, and {_KEEP}; or ask for less in the url: "
        f"durability={_less(facts)}",
        value=setting,
    )


def _flush(address: Address) -> str:
    return "always" if address.durability is Durability.FSYNC else "everysec"


def _less(facts: Facts) -> str:
    """Return what the server does keep."""
    keeps = facts.log and facts.flush == "everysec" and not facts.flush_rests
    return "everysec" if keeps else "none"


def _version(text: str) -> tuple[int, int, int]:
    numbers = [int(part) if part.isdecimal() else 0 for part in text.split(".")[:3]]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return major, minor, patch


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
