"""Turns what PostgreSQL and its library say into errors that name the cause and the remedy."""

from __future__ import annotations

import psycopg

from lamplighter.model.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)

_REPEAT = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "53300",  # too many connections
        "57P01",  # the server is being stopped
        "57P02",  # the server crashed
        "57P03",  # it is starting up
        "57P05",  # idle session timeout
        "25006",  # a standby answered: somebody else is, or soon will be, the server
        "25P03",  # idle in transaction timeout
        "XX000",  # a function was replaced while it was called
    }
)
# A connection that fails has no code, only words. They are looked for without their values.
_REFUSALS = (
    "password authentication failed",
    "no password supplied",
    "authentication failed",
    "no pg_hba.conf entry",
    "does not support ssl",
    "certificate verify failed",
    "could not translate host name",
    "name or service not known",
    "no address associated with hostname",
    "nodename nor servname",
    "does not exist",
    "permission denied for database",
    "is not permitted to log in",
    "does not have connect privilege",
    "is not currently accepting connections",
)


def may_pass(error: psycopg.Error) -> bool:
    """Tell whether the same call may well succeed a little later, on a new connection."""
    code = error.sqlstate
    if code is not None:
        return code in _REPEAT or code.startswith("08")
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    words = str(error).lower()
    return not any(refusal in words for refusal in _REFUSALS)


def breaks(error: psycopg.Error) -> bool:
    """Tell whether the connection on which this happened is of no more use."""
    code = error.sqlstate
    return code is None or code[:2] in ("08", "57", "53", "58", "XX") or code == "25006"


def explain(error: psycopg.Error, where: str) -> StoreError:
    """Give the StoreError for an error of the driver at this address."""
    code = error.sqlstate
    if code is None:
        return _without_code(error, where)
    said = _said(error)
    if code == "53100":
        return StoreFull(
            f"the disk of the PostgreSQL server at {where} is full",
            hint="free some space; nothing was half written, and work goes on by itself then",
            value=where,
        )
    if code == "25006":
        return StoreReadOnly(
            f"the PostgreSQL server at {where} only reads: {said}",
            hint="name the primary server; with several hosts in the url it is found by itself",
            value=where,
        )
    if code == "42501":
        return StoreUnreachable(
            f"the database user may not do this at {where}: {said}",
            hint="let `lamplighter migrate` run as the owner of the schema, and grant other users "
            "usage of the schema and rights on all its tables, sequences and functions",
            value=where,
        )
    if code in ("42P01", "42703", "42883", "3F000"):
        return StoreDamaged(
            f"a part of the store at {where} is missing: {said}",
            hint="run `lamplighter migrate` to put functions back; restore lost tables from a "
            "backup",
            value=where,
        )
    if code in ("XX001", "XX002"):
        return StoreDamaged(
            f"the database at {where} is damaged: {said}",
            hint="restore it from a backup, or promote a standby",
            value=where,
        )
    if code[:2] in ("40", "53") or code in ("55P03", "57014"):
        return StoreBusy(
            f"the PostgreSQL server at {where} could not do it in time: {said}",
            hint="look at its load, `max_connections`, and open transactions in pg_stat_activity; "
            "what was asked may be repeated safely",
            value=where,
        )
    if code[:2] in ("08", "28", "3D", "57", "58"):
        return StoreUnreachable(
            f"the PostgreSQL server at {where} cannot be used: {said}",
            hint="check that it runs and accepts this user; what was asked may be repeated safely",
            value=where,
        )
    return StoreError(
        f"PostgreSQL failed at {where}: {said} ({code})",
        hint="this is not expected; please report it with the text above",
        value=where,
    )


def _without_code(error: psycopg.Error, where: str) -> StoreError:
    said = _said(error)
    words = said.lower()
    if "session is read-only" in words or "hot standby" in words:
        return StoreReadOnly(
            f"the PostgreSQL server at {where} only reads",
            hint="name the primary server; with several hosts in the url it is found by itself",
            value=where,
        )
    if "too many" in words or "remaining connection slots" in words:
        return StoreBusy(
            f"the PostgreSQL server at {where} has no free connection: {said}",
            hint="raise `max_connections`, use fewer processes, or a smaller pool=… in the url",
            value=where,
        )
    return StoreUnreachable(
        f"the PostgreSQL server at {where} cannot be reached: {said}",
        hint=_remedy(words),
        value=where,
    )


def _remedy(words: str) -> str:
    if "password" in words or "authentication" in words or "pg_hba" in words:
        return "check user and password in the url, and what the server's pg_hba.conf allows"
    if "database" in words and "does not exist" in words:
        return "create the database, or name another one in the url"
    if "role" in words and "does not exist" in words:
        return "create the database user, or name another one in the url"
    if "host name" in words or "name or service" in words or "hostname" in words:
        return "check the host in the url, and the name service"
    if "ssl" in words or "certificate" in words:
        return "check sslmode and sslrootcert in the url"
    return "check host and port in the url, that the server runs, and that nothing blocks the way"


def _said(error: psycopg.Error) -> str:
    """The first thing the library said, on one line."""
    text = error.diag.message_primary or str(error) or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0].removeprefix("connection failed: ") if lines else text
