"""The address of a store: a PostgreSQL url, with a few options of our own among its own.

    postgresql://user:password@host:5432/database?schema=lamplighter&pool=4&listen=on

``schema``      the schema the store lives in; several stores may share a database.
``pool``        connections of one process: one is kept for signs of life, one for wake-ups.
``listen``      `off`: neither send nor wait for wake-ups; workers find new jobs at their next poll.
``durability``  `none`: also use a server that may forget what it has acknowledged; `full`: never.

Everything else goes to PostgreSQL's own library: `sslmode`, `connect_timeout`, several hosts, …
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidUrl
from lamplighter.model.names import shown as brief

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "lamplighter"
DEFAULT_POOL = 4
MIN_POOL = 3
MAX_POOL = 100
_LAST_PORT = 65535
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_EXAMPLE = "postgresql://user:password@host:5432/database"
_DEFAULTS = {
    "application_name": "lamplighter",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    # Notices a machine that vanished without a word within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    # After a failover the old server may still answer; it must not be taken for the store.
    "target_session_attrs": "read-write",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, and how to go there."""

    parameters: dict[str, str] = field(repr=False)
    """For PostgreSQL's library; a password may be among them."""
    shown: str
    """The address as people may see it: without the password."""
    schema: str = DEFAULT_SCHEMA
    pool: int = DEFAULT_POOL
    listen: bool = True
    durable: bool = True
    """Refuse a server that may forget what it has acknowledged."""


def parse(url: str) -> Address:
    """Read an address, or say what is wrong with it."""
    base, _, query = url.partition("?")
    public = redacted(url)
    if base.partition("://")[0] not in SCHEMES or "://" not in base or "\x00" in url:
        raise InvalidUrl(
            f"{brief(public)} is not the address of a PostgreSQL database",
            hint=f"write {_EXAMPLE}",
            value=public,
        )
    options = dict(parse_qsl(query, keep_blank_values=True))
    schema = _schema(options.pop("schema", DEFAULT_SCHEMA))
    pool = _pool(options.pop("pool", str(DEFAULT_POOL)))
    listen = _listen(options.pop("listen", "on"))
    durable = _durable(options.pop("durability", "full"))
    rest = f"{base}?{urlencode(options, quote_via=quote)}" if options else base
    given, problem = _read(rest)
    if problem:
        raise InvalidUrl(
            f"the address {public} cannot be read: {problem}",
            hint=f"write {_EXAMPLE}; in user and password, write @ as %40, / as %2F, : as %3A; "
            "options of ours are schema, pool, listen and durability, all others are PostgreSQL's",
            value=public,
        )
    return Address({**_DEFAULTS, **given}, public, schema, pool, listen, durable)


def _read(url: str) -> tuple[dict[str, str], str]:
    """Let PostgreSQL's library read a url; gives its parameters, or what is wrong.

    The library repeats what it cannot read, a password as it may be: only its reason is given.
    """
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except (ProgrammingError, UnicodeError) as error:
        return {}, str(error).partition(': "')[0].strip()
    ports = given.get("port", "").split(",")
    if any(port and not (port.isascii() and port.isdecimal()) for port in ports):
        return {}, "its port is no number"
    if any(port and int(port[:9]) > _LAST_PORT for port in ports):
        return {}, f"its port is above {_LAST_PORT}"
    hosts = given.get("host", "").split(",")
    # One that begins with it, or is a path, names a socket.
    if any("@" in host[1:] and not host.startswith("/") for host in hosts):
        # The library ends a password at the first @, and would take the rest of it for a host.
        return {}, "there is an @ too many before the host"
    return given, ""


def _schema(text: str) -> str:
    if _SCHEMA.fullmatch(text) and not text.startswith("pg_"):
        return text
    raise InvalidUrl(
        f"the schema {brief(text)} cannot be used",
        hint="give 1 to 63 small letters, digits and underscores, the first no digit, and not "
        "beginning with pg_; for instance schema=lamplighter",
        value=text,
    )


def _pool(text: str) -> int:
    if text.isdecimal() and text.isascii() and MIN_POOL <= int(text[:9]) <= MAX_POOL:
        return int(text)
    raise InvalidUrl(
        f"the option pool={brief(text)} cannot be used",
        hint=f"give the number of connections per process, {MIN_POOL} to {MAX_POOL}: one is kept "
        "for signs of life and one for wake-ups, so that fewer would not do",
        value=text,
    )


def _listen(text: str) -> bool:
    if text in ("on", "off"):
        return text == "on"
    raise InvalidUrl(
        f"the option listen={brief(text)} is neither on nor off",
        hint="write listen=off to do without wake-ups, for instance behind a transaction pooler",
        value=text,
    )


def _durable(text: str) -> bool:
    if text in ("full", "none"):
        return text == "full"
    raise InvalidUrl(
        f"the option durability={brief(text)} is neither full nor none",
        hint="write durability=none for a server whose jobs may be lost, for instance in tests; "
        "without the option such a server is refused",
        value=text,
    )


def user_of(where: str) -> str:
    """Return the database user an address names, or nothing where the system's own name is used."""
    return _read(where.partition("?")[0])[0].get("user", "")
