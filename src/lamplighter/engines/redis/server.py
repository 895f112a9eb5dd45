"""What a server says of itself, and whether it can keep a store."""

from __future__ import annotations

from dataclasses import dataclass

from lamplighter.engines.redis.address import Address, Durability
from lamplighter.engines.redis.connection import Connection
from lamplighter.engines.redis.wire import ReplyError
from lamplighter.model.errors import StoreError, StoreReadOnly, StoreUnreachable

OLDEST_REDIS = (7, 0)
OLDEST_VALKEY = (7, 2)
_SECTIONS = ("server", "memory", "persistence", "replication", "cluster", "clients")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What matters to us of all a server says. What it does not say is None."""

    program: str = "Redis"
    version: tuple[int, int, int] = (0, 0, 0)
    replica: bool = False
    cluster: bool = False
    memory_limit: int = 0
    """0: none."""
    memory_used: int = 0
    evicts: str = "noeviction"
    """What it does when its memory is used up."""
    log: bool = False
    """It writes a log of all changes (AOF)."""
    snapshots: bool | None = None
    """It saves snapshots (RDB) by itself."""
    flush: str | None = None
    """When the log goes to the disk: always, everysec or no."""
    writes: bool = True
    """The last write to the disk went well."""

    def __str__(self) -> str:
        return f"{self.program} {'.'.join(map(str, self.version))}"


async def read(connection: Connection) -> Facts:
    """Ask the server; what a user may not ask stays unknown."""
    said = parsed(await connection.command("INFO", *_SECTIONS))
    settings = await _settings(connection)
    valkey = "valkey_version" in said
    return Facts(
        program="Valkey" if valkey else "Redis",
        version=_version(said.get("valkey_version") or said.get("redis_version", "")),
        replica=said.get("role") == "slave",
        cluster=said.get("cluster_enabled") == "1",
        memory_limit=_number(said.get("maxmemory")),
        memory_used=_number(said.get("used_memory")),
        evicts=said.get("maxmemory_policy", "noeviction"),
        log=said.get("aof_enabled") == "1",
        snapshots=settings["save"] != "" if "save" in settings else None,
        flush=settings.get("appendfsync"),
        writes=said.get("aof_last_write_status", "ok") == "ok"
        and said.get("rdb_last_bgsave_status", "ok") == "ok",
    )


def parsed(info: bytes) -> dict[str, str]:
    """Read what INFO says: one `name:value` a line."""
    lines = info.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}


async def _settings(connection: Connection) -> dict[str, str]:
    try:
        found = await connection.command("CONFIG", "GET", "appendfsync", "save")
    except ReplyError:
        return {}  # hidden, as hosts of servers do
    words = [word.decode() for word in found]
    return dict(zip(words[::2], words[1::2], strict=False))


def check(facts: Facts, address: Address) -> None:
    """Refuse a server that cannot keep a store, or not as well as the address asks for."""
    for refusal in (too_old, alone, unwritable, forgetful):
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
        hint="use a server of its own, or a primary with replicas",
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


def forgetful(facts: Facts, address: Address) -> StoreError | None:
    """Say which setting lets the server forget what it has acknowledged."""
    if address.durability is Durability.NONE:
        return None
    if facts.memory_limit and facts.evicts != "noeviction":
        setting = f"maxmemory-policy={facts.evicts}"
        risk = "it drops keys when its memory is used up, jobs among them"
        remedy = "set maxmemory-policy noeviction"
    elif not facts.log:
        setting, risk = "appendonly=no", "a stop of the server loses the jobs since its last save"
        remedy = "set appendonly yes"
    elif facts.flush == "no":
        setting, risk = "appendfsync=no", "a crash of the machine loses up to half a minute"
        remedy = "set appendfsync everysec"
    elif address.durability is Durability.ALWAYS and facts.flush == "everysec":
        setting, risk = "appendfsync=everysec", "a crash of the machine loses the last second"
        remedy = "set appendfsync always, or ask for less with durability=everysec in the url"
    else:
        return None
    return StoreUnreachable(
        f"the server at {address.shown} runs with {setting}: {risk}",
        hint=f"{remedy}; or accept the loss with durability=none in the url",
        value=setting,
    )


def _version(text: str) -> tuple[int, int, int]:
    numbers = [int(part) if part.isdecimal() else 0 for part in text.split(".")[:3]]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return major, minor, patch


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
