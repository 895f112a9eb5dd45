"""Who may do what: the owner migrates, some run jobs, some only look.

PostgreSQL keeps the rights; nothing is written down beside them. Who had all rights of one kind
before a migration is given them on what is new after it.

``run``   reads and writes all tables and calls all functions, but makes and drops none, and only
          reads the audit log, the tokens and what is spent. Functions that act as the owner make
          the tables of the days, add to the log, remove what is old from it, end tokens, and spend
          what is good for a single use.
``read``  reads all tables and calls the functions that change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from lamplighter.engines.postgres import statements
from lamplighter.engines.postgres.connection import Connection
from lamplighter.engines.postgres.server import quoted
from lamplighter.model.errors import InvalidOption

GUARDED = ("audit", "token", "spent")
"""Tables that those who run jobs only read: they cannot erase what they did, let others in, or make
used login codes and ended sessions good again."""
_WRITING = "INSERT, UPDATE, DELETE"
CLOCK = "now_ms"
"""The one function for those who look that is not the same for a whole statement."""

# Who has been given rights on every table of the store, and whether these include writing.
_HOLDERS = """
SELECT r.rolname::text, bool_and(g.writes)
FROM (
    SELECT a.grantee,
           c.oid,
           bool_or(a.privilege_type = 'SELECT') AS reads,
           count(*) FILTER (WHERE a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE')) = 3
               OR c.relname = ANY (%s) AS writes
    FROM pg_class AS c
    CROSS JOIN LATERAL aclexplode(c.relacl) AS a
    WHERE c.relnamespace = current_schema()::regnamespace
      AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.grantee <> c.relowner
    GROUP BY a.grantee, c.oid, c.relname
) AS g
JOIN pg_roles AS r ON r.oid = g.grantee
WHERE g.reads
GROUP BY r.rolname
HAVING count(*) = (
    SELECT count(*) FROM pg_class AS c
    WHERE c.relnamespace = current_schema()::regnamespace
      AND c.relkind IN ('r', 'p') AND NOT c.relispartition)
"""

_FUNCTIONS = """
SELECT p.oid::regprocedure::text, p.provolatile <> 'v' OR p.proname = %s
FROM pg_proc AS p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname = ANY (%s)
"""


@dataclass(frozen=True, slots=True)
class Holders:
    """Names of database users."""

    run: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


NOBODY = Holders()


async def holders(connection: Connection) -> Holders:
    """Return those who may run jobs or look in the current schema, beside its owner."""
    cursor = await connection.execute(_HOLDERS, (list(GUARDED),))
    found = await cursor.fetchall()
    return Holders(
        tuple(name for name, writes in found if writes),
        tuple(name for name, writes in found if not writes),
    )


async def check(connection: Connection, names: Iterable[str]) -> None:
    """Refuse users that the server does not know."""
    cursor = await connection.execute("SELECT rolname::text FROM pg_roles")
    known = {name for (name,) in await cursor.fetchall()}
    for name in names:
        if name not in known:
            raise InvalidOption(
                f"there is no database user `{name}`",
                hint=f"create it first: CREATE ROLE {quoted(name)} LOGIN PASSWORD '…'",
                value=name,
            )


async def give(connection: Connection, to: Holders) -> None:
    """Grant the rights, inside the caller's transaction; giving them twice changes nothing."""
    if not (to.run or to.read):
        return
    cursor = await connection.execute(_FUNCTIONS, (CLOCK, statements.function_names()))
    functions = await cursor.fetchall()
    parts = [
        *_grants(to.run, f"SELECT, {_WRITING}", [name for name, _ in functions]),
        *_grants(to.read, "SELECT", [name for name, harmless in functions if harmless]),
    ]
    cursor = await connection.execute("SELECT quote_ident(current_schema())")
    row: Any = await cursor.fetchone()
    script: Any = ";\n".join(parts).replace("{schema}", row[0])
    await connection.execute(script)


def _grants(names: tuple[str, ...], rights: str, functions: list[str]) -> Iterable[str]:
    for name in names:
        user = sql.Identifier(name).as_string()
        yield f"GRANT USAGE ON SCHEMA {{schema}} TO {user}"
        yield f"GRANT {rights} ON ALL TABLES IN SCHEMA {{schema}} TO {user}"
        if rights != "SELECT":
            for table in GUARDED:
                yield f"REVOKE ALL ON {{schema}}.{table} FROM {user}"
                yield f"GRANT SELECT ON {{schema}}.{table} TO {user}"
            yield f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {{schema}} TO {user}"
        yield f"GRANT EXECUTE ON ROUTINE {', '.join(functions)} TO {user}"
