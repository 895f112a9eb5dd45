"""The address of a store: a Redis url, with a few options of our own.

    redis://user:password@host:6379/0?prefix=lamp&shards=1&durability=everysec
    rediss://host:6380?ca=/etc/ssl/redis.pem         with TLS
    unix:///run/redis.sock?db=0                      a socket on this machine

``prefix``      what all keys begin with; several stores may share a server.
``shards``      parts of the store, decided when it is made; who says nothing takes what is there.
``durability``  what an acknowledged job survives, and so how the server must be set: `fsync` every
                write is on its disk before it is answered, `everysec` all but the last second or
                two are, `replicated` the same and replicas have the job, too, `none` whatever the
                server does.
``replicas``, ``replica_timeout``  how many of them, and the seconds they have to say so.
``on_data_loss``  what a running process does when the server has lost the store: `refuse` calls
                until somebody makes one (`lamplighter migrate`), or `recreate` it, empty.
``ca``, ``cert``, ``key``  files for TLS: whom to trust, and who we are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl, unquote

from lamplighter.engines.redis.keys import PREFIX
from lamplighter.engines.redis.shards import MOST_SHARDS
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidUrl
from lamplighter.model.names import shown as brief

SCHEMES = ("redis", "rediss", "unix")
DEFAULT_PREFIX = "lamp"
DEFAULT_PORT = 6379
MOST_REPLICAS = 16
SHORTEST_WAIT = 0.01
LONGEST_WAIT = 5.0
"""Seconds for replicas; a connection that is silent for longer is given up."""
_EXAMPLE = "redis://user:password@host:6379/0"
_OPTIONS = (
    *("prefix", "shards", "durability", "replicas", "replica_timeout", "on_data_loss", "db"),
    *("ca", "cert", "key"),
)
_REFUSE, _RECREATE = "refuse", "recreate"
_PLACE = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^:/\[\]]*)(?::(?P<port>[^/]*))?(?:/(?P<db>.*))?"
)
_SECONDS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?")


class Durability(StrEnum):
    """What an acknowledged write survives."""

    FSYNC = "fsync"
    EVERYSEC = "everysec"
    REPLICATED = "replicated"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, and how to go there."""

    shown: str
    """The address as people may see it: without the password."""
    host: str = "localhost"
    port: int = DEFAULT_PORT
    path: str | None = None
    """A socket on this machine, instead of host and port."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    db: int = 0
    tls: bool = False
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    prefix: str = DEFAULT_PREFIX
    shards: int | None = None
    """None: as many as the store has; one, if it is made now."""
    durability: Durability = Durability.EVERYSEC
    replicas: int = 1
    """How many of them must have a job before it is acknowledged, with `durability=replicated`."""
    replica_timeout: float = 1.0
    """How many seconds they have."""
    recreate: bool = False
    """Make an empty store where a running process finds that the server has lost its own."""


def parse(url: str) -> Address:
    """Read an address, or say what is wrong with it."""
    scheme, separator, rest = url.partition("://")
    public = redacted(url)
    if scheme not in SCHEMES or not separator or "\x00" in url or "#" in url:
        raise InvalidUrl(
            f"{brief(public)} is not the address of a Redis server",
            hint=f"write {_EXAMPLE}, rediss://… for TLS, or unix:///path/of/the.sock; write # as "
            "%23",
            value=public,
        )
    base, _, query = rest.partition("?")
    if "@" in query:
        raise InvalidUrl(
            f"the address {public} cannot be read: an @ stands behind a ?",
            hint="in user and password, write ? as %3F and @ as %40; in options, @ as %40",
            value=public,
        )
    options = _options(query, public)
    who, _, place = base.rpartition("@")
    user, password = _login(who)
    host, port, path, db = _socket(place, public) if scheme == "unix" else _server(place, public)
    tls = scheme == "rediss"
    _check_files(options, public, tls=tls)
    durability = _durability(options.get("durability", Durability.EVERYSEC.value))
    _check_replicas(options, public, durability)
    return Address(
        shown=public,
        host=host,
        port=port,
        path=path,
        user=user,
        password=password,
        db=_db(options.get("db", db)),
        tls=tls,
        ca=options.get("ca"),
        cert=options.get("cert"),
        key=options.get("key"),
        prefix=_prefix(options.get("prefix", DEFAULT_PREFIX)),
        shards=_shards(options["shards"]) if "shards" in options else None,
        durability=durability,
        replicas=_replicas(options.get("replicas", "1")),
        replica_timeout=_replica_timeout(options.get("replica_timeout", "1")),
        recreate=_recreate(options.get("on_data_loss", _REFUSE)),
    )


def _options(query: str, public: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    found = dict(pairs)
    for name in found:
        if name not in _OPTIONS:
            raise InvalidUrl(
                f"the address {public} has an option {brief(name)} that is not known",
                hint=f"use {', '.join(_OPTIONS)}; user and password stand before the host: "
                f"{_EXAMPLE}",
                value=name,
            )
    if len(found) < len(pairs):
        raise InvalidUrl(
            f"the address {public} gives an option twice", hint="give it once", value=public
        )
    return found


def _login(who: str) -> tuple[str | None, str | None]:
    """Read user and password; a password alone is written with a colon before it."""
    user, colon, password = who.partition(":")
    return unquote(user) or None, unquote(password) if colon else None


def _server(place: str, public: str) -> tuple[str, int, None, str]:
    found = _PLACE.fullmatch(place)
    if found is None:
        raise InvalidUrl(
            f"the address {public} cannot be read",
            hint=f"write {_EXAMPLE}; in user and password, write @ as %40, / as %2F, : as %3A",
            value=public,
        )
    text = found["port"] or str(DEFAULT_PORT)
    if not (_is_number(text) and 0 < int(text[:9]) < 1 << 16):
        raise InvalidUrl(
            # The port is not quoted: who forgets the host writes the password there.
            f"the address {public} cannot be read: its port is no number from 1 to 65535",
            hint=f"write {_EXAMPLE}; in user and password, write @ as %40, / as %2F, : as %3A",
            value=public,
        )
    host = unquote(found["host"]).strip("[]") or "localhost"
    return host, int(text), None, found["db"] or "0"


def _socket(place: str, public: str) -> tuple[str, int, str, str]:
    if not place.startswith("/"):
        raise InvalidUrl(
            f"the address {public} names no socket",
            hint="write its full path: unix:///run/redis/redis.sock?db=0",
            value=public,
        )
    return "localhost", DEFAULT_PORT, unquote(place), "0"


def _check_files(options: dict[str, str], public: str, *, tls: bool) -> None:
    given = [name for name in ("ca", "cert", "key") if name in options]
    if given and not tls:
        raise InvalidUrl(
            f"the address {public} has the option {brief(given[0])}, but no TLS",
            hint="write rediss://… instead of redis://…, or leave the option out",
            value=public,
        )
    if "key" in options and "cert" not in options:
        raise InvalidUrl(
            f"the address {public} has a key without a certificate",
            hint="name the certificate with cert=…",
            value=public,
        )


def _db(text: str) -> int:
    if _is_number(text) and len(text) <= 6:
        return int(text)
    raise InvalidUrl(
        f"the database {brief(text)} is no number",
        hint=f"Redis numbers its databases from 0 on: {_EXAMPLE}",
        value=text,
    )


def _prefix(text: str) -> str:
    if PREFIX.fullmatch(text):
        return text
    raise InvalidUrl(
        f"the prefix {brief(text)} cannot be used",
        hint="give 1 to 64 letters, digits, and _ . : or -, for instance prefix=lamp",
        value=text,
    )


def _shards(text: str) -> int:
    if _is_number(text) and 1 <= int(text[:9]) <= MOST_SHARDS:
        return int(text)
    raise InvalidUrl(
        f"the option shards={brief(text)} cannot be used",
        hint=f"give a number from 1 to {MOST_SHARDS}; one shard is enough for one server",
        value=text,
    )


def _durability(text: str) -> Durability:
    if text in Durability.__members__.values():
        return Durability(text)
    raise InvalidUrl(
        f"the option durability={brief(text)} is not known",
        hint="write fsync, everysec, replicated, or none for a server whose jobs may be lost, for "
        "instance in tests",
        value=text,
    )


def _check_replicas(options: dict[str, str], public: str, durability: Durability) -> None:
    given = [name for name in ("replicas", "replica_timeout") if name in options]
    if given and durability is not Durability.REPLICATED:
        raise InvalidUrl(
            f"the address {public} has the option {brief(given[0])}, but durability={durability} "
            "waits for no replica",
            hint="write durability=replicated, or leave the option out",
            value=public,
        )


def _replicas(text: str) -> int:
    if _is_number(text) and 1 <= int(text[:9]) <= MOST_REPLICAS:
        return int(text)
    raise InvalidUrl(
        f"the option replicas={brief(text)} cannot be used",
        hint=f"give how many replicas must confirm a job, from 1 to {MOST_REPLICAS}",
        value=text,
    )


def _replica_timeout(text: str) -> float:
    if _SECONDS.fullmatch(text) and SHORTEST_WAIT <= float(text) <= LONGEST_WAIT:
        return float(text)
    raise InvalidUrl(
        f"the option replica_timeout={brief(text)} cannot be used",
        hint=f"give seconds from {SHORTEST_WAIT:g} to {LONGEST_WAIT:g}, for instance 0.5",
        value=text,
    )


def _recreate(text: str) -> bool:
    if text in (_REFUSE, _RECREATE):
        return text == _RECREATE
    raise InvalidUrl(
        f"the option on_data_loss={brief(text)} is not known",
        hint=f"write {_REFUSE}, or {_RECREATE} to go on with an empty store when the server has "
        "lost its data",
        value=text,
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
