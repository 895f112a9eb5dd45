"""Who else has a hand in the schema of a store.

Names in our functions are looked up in the schema. Whoever can put a function, an operator or a
table there decides what they do, and they run as whoever calls them, some as the owner of the
store. So the schema must belong to the owner, and nobody else may create in it, or have something
of theirs there.

Superusers can do everything in any case, and so can members of the role that owns the schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.connection import Connection
from lamplighter.engines.postgres.server import quoted
from lamplighter.model.errors import StoreForbidden

_STRANGERS = """
WITH RECURSIVE place AS (
    SELECT n.oid, n.nspname, n.nspacl, base.oid AS base,
           CASE holder.rolname WHEN 'pg_database_owner' THEN d.datdba ELSE n.nspowner END AS holder
    FROM pg_catalog.pg_namespace AS n
    JOIN pg_catalog.pg_roles AS base ON base.rolname = %s
    JOIN pg_catalog.pg_roles AS holder ON holder.oid = n.nspowner
    JOIN pg_catalog.pg_database AS d ON d.datname = pg_catalog.current_database()
    WHERE n.nspname = %s
), above AS (
    SELECT place.base AS role FROM place
    UNION
    SELECT m.roleid FROM pg_catalog.pg_auth_members AS m JOIN above ON m.member = above.role
), below AS (
    SELECT place.holder AS role FROM place WHERE place.holder IN (SELECT above.role FROM above)
    UNION
    SELECT m.member FROM pg_catalog.pg_auth_members AS m JOIN below ON m.roleid = below.role
), trusted AS (
    SELECT below.role FROM below
    UNION SELECT place.base FROM place
    UNION SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolsuper
    UNION SELECT r.oid FROM pg_catalog.pg_roles AS r, place
          WHERE r.rolname = 'pg_database_owner' AND place.holder IN (SELECT below.role FROM below)
), found AS (
    SELECT 1 AS rank, 'schema' AS kind, place.nspname::text AS name, place.holder AS role FROM place
    UNION ALL
    SELECT 2, 'create', place.nspname::text, a.grantee
    FROM place, pg_catalog.aclexplode(place.nspacl) AS a WHERE a.privilege_type = 'CREATE'
    UNION ALL
    SELECT 3, 'function', p.oid::pg_catalog.regprocedure::text, p.proowner
    FROM place JOIN pg_catalog.pg_proc AS p ON p.pronamespace = place.oid
    UNION ALL
    SELECT 3, 'operator', o.oid::pg_catalog.regoperator::text, o.oprowner
    FROM place JOIN pg_catalog.pg_operator AS o ON o.oprnamespace = place.oid
    UNION ALL
    SELECT 3, 'table or view', c.oid::pg_catalog.regclass::text, c.relowner
    FROM place JOIN pg_catalog.pg_class AS c ON c.relnamespace = place.oid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    UNION ALL
    SELECT 3, 'type', t.oid::pg_catalog.regtype::text, t.typowner
    FROM place JOIN pg_catalog.pg_type AS t ON t.typnamespace = place.oid
    WHERE t.typrelid = 0 AND t.typelem = 0
)
SELECT found.kind, found.name, r.rolname::text
FROM found LEFT JOIN pg_catalog.pg_roles AS r ON r.oid = found.role
WHERE found.role NOT IN (SELECT trusted.role FROM trusted)
ORDER BY found.rank, found.name
LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """Somebody else who has a hand in the schema."""

    kind: str
    """What they have: the `schema`, the right to `create` in it, or an object of that kind."""
    name: str
    role: str | None
    """None: everybody."""

    @property
    def cause(self) -> str:
        """Say what is wrong."""
        who = "everybody" if self.role is None else f"the user `{self.role}`"
        if self.kind == "schema":
            return f"the schema `{self.name}` belongs to {who}"
        if self.kind == "create":
            return f"{who} may create objects in the schema `{self.name}`"
        return f"the {self.kind} `{self.name}` belongs to {who}"

    def remedy(self, owner: str, schema: str) -> str:
        """Say what to do about it."""
        if self.kind == "schema":
            return (
                f"do this as `{self.role}`, name another schema, or: "
                f"ALTER SCHEMA {schema} OWNER TO {quoted(owner)}"
            )
        if self.kind == "create":
            role = "PUBLIC" if self.role is None else quoted(self.role)
            return f"REVOKE CREATE ON SCHEMA {schema} FROM {role}"
        return "name another schema, or look at it and drop it"


async def find(connection: Connection, schema: str, owner: str) -> Stranger | None:
    """Return the first that is found beside this owner, or None."""
    cursor = await connection.execute(_STRANGERS, (owner, schema))
    row: Any = await cursor.fetchone()
    return None if row is None else Stranger(kind=row[0], name=row[1], role=row[2])


async def check(connection: Connection, address: Address, user: str) -> None:
    """Refuse to make or change a store where somebody else could have functions of theirs run."""
    found = await find(connection, address.schema, user)
    if found is None:
        return
    raise StoreForbidden(
        f"the store at {address.shown} is not made or changed: {found.cause}, and could have "
        f"functions of their own run with the rights of `{user}`",
        hint=found.remedy(user, address.schema),
        value=address.schema,
    )
