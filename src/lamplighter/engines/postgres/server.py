"""What a server says about itself and about our schema, and whether a store may live there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lamplighter.engines.postgres.address import Address
from lamplighter.engines.postgres.connection import Connection
from lamplighter.model.errors import (
    StoreError,
    StoreForbidden,
    StoreReadOnly,
    StoreUnreachable,
)

MINIMUM = 14
READ_COMMITTED = "read committed"
_READ_ONLY_HINT = "name the primary server; with several hosts in the url it is found by itself"

_FACTS = """
SELECT current_setting('server_version_num')::integer AS number,
       current_setting('server_version') AS version,
       pg_is_in_recovery() AS standby,
       current_setting('transaction_read_only') = 'on' AS read_only,
       current_setting('server_encoding') AS encoding,
       current_setting('default_transaction_isolation') AS isolation,
       current_setting('array_nulls') = 'on' AS array_nulls,
       current_setting('fsync') = 'on' AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_user::text AS "user",
       has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
       n.oid IS NOT NULL AS schema,
       coalesce(has_schema_privilege(n.oid, 'USAGE'), false) AS may_use,
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false) AS may_create,
       (SELECT count(*) FROM pg_class AS c
        WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')) AS tables,
       (SELECT count(*) FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname IN ('name', 'value')
        WHERE c.relnamespace = n.oid AND c.relname = 'meta') = 2
       AND EXISTS (SELECT FROM pg_class AS c
                   JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'handout'
                   WHERE c.relnamespace = n.oid AND c.relname = 'job') AS ours,
       owner.rolname::text AS owner,
       coalesce(pg_has_role(owner.oid, 'USAGE'), false) AS owns,
       (SELECT p.prosrc FROM pg_proc AS p
        WHERE p.pronamespace = n.oid AND p.proname = 'now_ms') AS clock
FROM (SELECT %s::text AS name) AS given
LEFT JOIN pg_namespace AS n ON n.nspname = given.name
LEFT JOIN pg_class AS meta ON meta.relnamespace = n.oid AND meta.relname = 'meta'
LEFT JOIN pg_roles AS owner ON owner.oid = meta.relowner
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the server says, in the order of the statement above."""

    number: int = MINIMUM * 10_000
    version: str = str(MINIMUM)
    standby: bool = False
    read_only: bool = False
    encoding: str = "UTF8"
    isolation: str = READ_COMMITTED
    array_nulls: bool = True
    fsync: bool = True
    synchronous_commit: str = "on"
    user: str = ""
    may_create_schema: bool = True
    schema: bool = False
    may_use: bool = False
    may_create: bool = False
    tables: int = 0
    """Tables and views in the schema, whoever they belong to."""
    ours: bool = False
    """The schema has tables of ours."""
    owner: str | None = None
    """Who owns them."""
    owns: bool = False
    """This user may change what the owner may."""
    clock: str | None = None


async def read(connection: Connection, schema: str) -> Facts:
    """Ask the server, in one statement that works on any database.

    For a transaction that is guarded, or looks names up in our schema only.
    """
    cursor = await connection.execute(_FACTS, (schema,))
    row: Any = await cursor.fetchone()
    names = [column.name for column in cursor.description or ()]
    return Facts(**dict(zip(names, row, strict=True)))


def check_version(connection: Connection, address: Address) -> None:
    """Refuse an old server before it is asked anything it may not understand."""
    number = connection.pgconn.server_version
    if number >= MINIMUM * 10_000:
        return
    said = connection.info.parameter_status("server_version") or str(number)
    raise StoreUnreachable(
        f"the server at {address.shown} is PostgreSQL {said}; {MINIMUM} or newer is needed",
        hint="update the server",
        value=said,
    )


def check(facts: Facts, address: Address) -> None:
    """Refuse a server that cannot keep a store, or not as well as the address asks for."""
    refusal = (
        unwritable(facts, address)
        or unreadable(facts, address)
        or unsuited(facts, address)
        or forgetful(facts, address)
    )
    if refusal is not None:
        raise refusal


def unwritable(facts: Facts, address: Address) -> StoreError | None:
    """Say why nothing can be written."""
    if facts.standby:
        return StoreReadOnly(
            f"the PostgreSQL server at {address.shown} is a standby, which only reads",
            hint=_READ_ONLY_HINT,
            value=address.shown,
        )
    if facts.read_only:
        return StoreReadOnly(
            f"the sessions of user `{facts.user}` at {address.shown} only read: "
            "default_transaction_read_only is on",
            hint="find who set it with `SELECT source FROM pg_settings WHERE name = "
            "'default_transaction_read_only'`, and reset it there (ALTER DATABASE, ALTER ROLE, "
            "postgresql.conf)",
            value=address.shown,
        )
    return None


def unreadable(facts: Facts, address: Address) -> StoreError | None:
    """Say why not every text can be kept."""
    if facts.encoding == "UTF8":
        return None
    return StoreUnreachable(
        f"the database at {address.shown} keeps text as {facts.encoding}, not as UTF8",
        hint="CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one",
        value=facts.encoding,
    )


def unsuited(facts: Facts, address: Address) -> StoreError | None:
    """Say which setting of our sessions makes calls do something else than they should."""
    if facts.isolation != READ_COMMITTED:
        setting = f"default_transaction_isolation={facts.isolation}"
        effect = (
            "calls would not see what others commit while they wait for them, and jobs could be "
            "stored or run twice"
        )
        remedy = isolation_remedy(facts.user)
    elif not facts.array_nulls:
        setting = "array_nulls=off"
        effect = "what is missing in a list would be stored as the word NULL"
        remedy = array_nulls_remedy(facts.user)
    else:
        return None
    return StoreUnreachable(
        f"the sessions of user `{facts.user}` at {address.shown} run with {setting}: {effect}",
        hint=f"{remedy}; take it out of `options=…` in the url and of PGOPTIONS, if it is there",
        value=setting,
    )


def isolation_remedy(user: str) -> str:
    """Say how our sessions get the isolation they need, whatever others have."""
    return f"ALTER ROLE {quoted(user)} SET default_transaction_isolation = '{READ_COMMITTED}'"


def array_nulls_remedy(user: str) -> str:
    """Say how our sessions read lists as they are meant."""
    return f"ALTER ROLE {quoted(user)} SET array_nulls = on"


def forgetful(facts: Facts, address: Address) -> StoreError | None:
    """Say which setting lets the server forget what it has acknowledged."""
    if not address.durable:
        return None
    if not facts.fsync:
        setting, risk = "fsync=off", "a crash of the machine may destroy the whole database"
        remedy = "set fsync = on in postgresql.conf and reload"
    elif facts.synchronous_commit == "off":
        setting, risk = "synchronous_commit=off", "a crash of the server loses its last commits"
        remedy = (
            "set synchronous_commit = on where it was switched off: postgresql.conf, "
            "ALTER DATABASE, ALTER ROLE or the url"
        )
    else:
        return None
    return StoreUnreachable(
        f"the PostgreSQL server at {address.shown} runs with {setting}: {risk}, and jobs that "
        "were acknowledged with it",
        hint=f"{remedy}; or accept the loss with durability=none in the url",
        value=setting,
    )


def check_may_install(facts: Facts, address: Address) -> None:
    """Refuse a user who cannot make the store."""
    if facts.may_create if facts.schema else facts.may_create_schema:
        return
    if facts.schema:
        wanted = f"ALTER SCHEMA {address.schema} OWNER TO {quoted(facts.user)}"
    else:
        wanted = f"CREATE SCHEMA {address.schema} AUTHORIZATION {quoted(facts.user)}"
    raise StoreForbidden(
        f"the user `{facts.user}` may not create the store in the schema `{address.schema}` "
        f"at {address.shown}",
        hint=f"let an administrator run: {wanted}",
        value=facts.user,
    )


def check_may_change(facts: Facts, address: Address) -> None:
    """Refuse a user who may use the store, but not bring it to another version."""
    if facts.owns and facts.may_create:
        return
    raise StoreForbidden(
        f"the store at {address.shown} was made by another version of lamplighter, and the user "
        f"`{facts.user}` may not change it",
        hint=f"run `lamplighter migrate` as its owner `{facts.owner}`",
        value=facts.user,
    )


def check_may_grant(facts: Facts, address: Address) -> None:
    """Refuse a user who cannot give rights; PostgreSQL itself would only warn."""
    if facts.owns:
        return
    raise StoreForbidden(
        f"the user `{facts.user}` may not give rights on the store at {address.shown}",
        hint=f"do it as its owner `{facts.owner}`",
        value=facts.user,
    )


def quoted(name: str) -> str:
    """Write a name as SQL wants it."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower()
    if plain and not name[:1].isdigit():
        return name
    return '"' + name.replace('"', '""') + '"'
