"""The functions of a store: made anew when they have changed, and none left that is no longer used.

They are replaced where they stand, so that workers can go on: a call uses the old function or the
new one. What a newer version no longer has, and what it gives other parameters or another answer,
is dropped in the same transaction. A worker of the older version that calls such a function is told
that a part of the store is missing; such a worker has to be replaced by one of the newer version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import errors

from lamplighter.engines.postgres import statements
from lamplighter.engines.postgres.connection import Connection

MARK = "a part of lamplighter"

_VIEWS = """
SELECT c.oid::regclass::text
FROM pg_class AS c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'v'
  AND c.relname = ANY (%s)
ORDER BY c.oid
"""

# Ours are marked; those of a name we use are ours in any case. `place` changes with each change.
_OURS = """
SELECT p.oid, p.oid::regprocedure::text AS name, p.ctid::text AS place
FROM pg_proc AS p
WHERE p.pronamespace = current_schema()::regnamespace
  AND (p.proname = ANY (%s) OR obj_description(p.oid, 'pg_proc') = %s)
ORDER BY p.oid
"""


async def make(connection: Connection, schema: str) -> None:
    """Make all functions in this schema, the current one, inside the caller's transaction."""
    before = await _ours(connection)
    try:
        async with connection.transaction():
            await _script(connection, statements.functions(schema))
    except (errors.InvalidFunctionDefinition, errors.InvalidTableDefinition):
        # One gives another answer than before: that cannot be replaced, only made anew.
        await _script(connection, _drops(name for name, _ in before.values()))
        await _script(connection, await _view_drops(connection))
        before = {}
        await _script(connection, statements.functions(schema))
    after = await _ours(connection)
    stale = [name for oid, (name, place) in before.items() if after.get(oid) == (name, place)]
    fresh = [name for oid, (name, _) in after.items() if oid not in before]
    await _script(connection, [*_drops(stale), *_marks(fresh)])


async def _script(connection: Connection, parts: Sequence[str]) -> None:
    """Run many statements in one round trip; they belong to the transaction around them."""
    text: Any = ";\n".join(parts)
    if parts:
        await connection.execute(text)


async def _ours(connection: Connection) -> dict[int, tuple[str, str]]:
    """Return the functions there are: how they are called, and where their rows stand."""
    cursor = await connection.execute(_OURS, (statements.function_names(), MARK))
    return {oid: (name, place) for oid, name, place in await cursor.fetchall()}


# The names are written by PostgreSQL itself, with their parameters, and quotes where needed.


async def _view_drops(connection: Connection) -> list[str]:
    cursor = await connection.execute(_VIEWS, (statements.view_names(),))
    names = [name for (name,) in await cursor.fetchall()]
    return [f"DROP VIEW IF EXISTS {', '.join(names)}"] if names else []


def _drops(names: Iterable[str]) -> list[str]:
    return [f"DROP ROUTINE IF EXISTS {name}" for name in names]


def _marks(names: Iterable[str]) -> list[str]:
    """Mark new functions as ours; nobody may call them but those whom `rights.py` allows it."""
    return [
        f"COMMENT ON ROUTINE {name} IS '{MARK}'; REVOKE ALL ON ROUTINE {name} FROM PUBLIC"
        for name in names
    ]
