"""What the check-up knows: read once, judged by many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from psycopg import Error, sql

from lamplighter.engines.postgres import rights, server
from lamplighter.engines.postgres.connection import Connection
from lamplighter.engines.postgres.strangers import Stranger
from lamplighter.port.checkup import Overdue


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting as it is for our session, and where that comes from."""

    value: str
    source: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A setting that a role or a database has of its own; None stands for all of them."""

    name: str
    value: str
    role: str | None = None
    database: str | None = None

    @property
    def place(self) -> str:
        """Say where it was set, as one would reset it."""
        if self.role is None:
            return f"ALTER DATABASE {server.quoted(self.database or '')}"
        inside = f" IN DATABASE {server.quoted(self.database)}" if self.database else ""
        return f"ALTER ROLE {server.quoted(self.role)}{inside}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standby:
    """A server that follows this one; what we may not see is None."""

    name: str = ""
    state: str | None = None
    sync: str | None = None
    behind_bytes: float | None = None
    behind_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Something that keeps dead rows from being swept."""

    kind: str
    name: str
    application: str | None = None
    user: str | None = None
    state: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table, view, index or sequence in the schema of the store."""

    name: str
    kind: str = "r"
    partition: bool = False
    options: tuple[str, ...] = ()
    valid: bool = True
    live: int = 0
    dead: int = 0
    bytes: int = 0
    lacks: tuple[str, ...] = ()
    """Rights for running jobs that our user does not have on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """A function in the schema of the store."""

    name: str
    changes: bool = False
    definer: bool = False
    """It acts as its owner, whoever calls it."""
    callable: bool = True
    path: bool = True
    """It says itself where names are looked up."""
    everybody: bool = False
    """Everybody may call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that is judged."""

    shown: str = "postgresql://"
    """The address of the store."""
    schema: str = "lamplighter"
    durable: bool = True
    """The address asks for a server that forgets nothing."""
    lease_ms: int = 30_000
    host: server.Facts = field(default_factory=server.Facts)
    version: int = 0
    """Of the tables; 0 when there are none."""
    newest: int = 0
    """The version this program knows."""
    current: bool = True
    """The functions are those of this program, or of a newer one."""
    refusal: tuple[str, str] | None = None
    """Why the store would not be opened: the cause and the hint."""
    user: str = ""
    database: str = ""
    sees_all: bool = True
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    overrides: tuple[Override, ...] = ()
    standbys: tuple[Standby, ...] = ()
    holders: tuple[Holder, ...] = ()
    connections: int = 0
    """In use on the whole server."""
    xid_age: int = 0
    multixact_age: int = 0
    relations: tuple[Relation, ...] = ()
    routines: tuple[Routine, ...] = ()
    now_ms: float = 0.0
    skew_ms: float = 0.0
    """How far the server's clock is ahead of ours."""
    doubt_ms: float = 0.0
    """How far off that may be: half the time of the round trip."""
    pooled: bool = False
    """Something between us and the server lends connections for single transactions."""
    between: bool = False
    """Something stands between us and the server."""
    news: float = 0.0
    """How full the server's queue of notifications is: 1 is full."""
    heard: bool | None = None
    """Whether a wake-up arrived; None where none is wanted."""
    overdue: Overdue | None = None
    """None where that cannot be read."""
    stranger: Stranger | None = None
    """Somebody else than the owner of the store who has a hand in its schema."""

    def setting(self, name: str, default: str = "") -> str:
        """Return the value of a setting for our session."""
        found = self.settings.get(name)
        return default if found is None else found.value

    def number(self, name: str) -> int:
        """Return the value of a numeric setting; 0 where the server has no such setting."""
        return int(self.setting(name, "0"))


@cache
def statement() -> str:
    """Return the statement that asks for all of it."""
    folder = resources.files("lamplighter.engines.postgres.checkup")
    return folder.joinpath("facts.sql").read_text(encoding="utf-8")


async def read(connection: Connection, schema: str) -> dict[str, Any]:
    """Ask the server, and give the fields of Facts that it knows."""
    query: Any = statement()
    given = {"schema": schema, "guarded": list(rights.GUARDED)}
    cursor = await connection.execute(query, given)
    row: Any = await cursor.fetchone()
    found: dict[str, Any] = json.loads(row[0])
    return {
        **found,
        "connections": int(found["connections"] or 0),
        "settings": {name: Setting(**one) for name, one in found["settings"].items()},
        "overrides": tuple(Override(**one) for one in found["overrides"]),
        "standbys": tuple(Standby(**one) for one in found["standbys"]),
        "holders": tuple(Holder(**one) for one in found["holders"]),
        "relations": tuple(_relation(one) for one in found["relations"]),
        "routines": tuple(Routine(**one) for one in found["routines"]),
    }


_OVERDUE = """
SELECT count(*), coalesce({schema}.now_ms() - min(d.wake), 0)
FROM (SELECT schedule.wake
      FROM {schema}.schedule
      WHERE schedule.wake IS NOT NULL AND schedule.hold IS NULL
        AND schedule.wake <= (SELECT {schema}.now_ms())
      ORDER BY schedule.wake, schedule.due, schedule.key
      LIMIT 10000) AS d
"""


async def read_overdue(connection: Connection, schema: str) -> Overdue | None:
    """Ask the store for schedules that nobody fires; None where we may not."""
    try:
        async with connection.transaction():
            query = sql.SQL(_OVERDUE).format(schema=sql.Identifier(schema))
            cursor = await connection.execute(query)
            row: Any = await cursor.fetchone()
    except Error:
        return None
    return Overdue(int(row[0]), int(row[1]))


def _relation(given: dict[str, Any]) -> Relation:
    lists: dict[str, Any] = {name: tuple(given.pop(name)) for name in ("options", "lacks")}
    return Relation(**given, **lists)
