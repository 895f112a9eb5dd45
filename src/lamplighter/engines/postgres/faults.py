"""Turns what PostgreSQL and its library say into errors that name the cause and the remedy."""

from __future__ import annotations

import re

import psycopg

from lamplighter.engines.postgres.address import user_of
from lamplighter.model.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreForbidden,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
)

_PROTOCOL = "08P01"
_CANCELLED = "57014"
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
        "55P03",  # a lock was not there in time: whoever has it gives it back soon
        "XX000",  # a function was replaced while it was called
    }
)
_ENDS = ("08", "57", "53", "58", "XX", "25006", "25P03", "25P04")
"""Codes, and beginnings of codes, after which a connection is of no more use."""
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
    "no space left on device",
)


def may_pass(error: psycopg.Error) -> bool:
    """Tell whether the same call may well succeed a little later, on a new connection."""
    code = error.sqlstate
    if code is not None:
        again = code in _REPEAT or (code.startswith("08") and code != _PROTOCOL)
        return again or _moved(error)
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    words = str(error).lower()
    return not any(refusal in words for refusal in _REFUSALS)


def puzzles(error: psycopg.Error) -> bool:
    """Tell whether it may pass, but means that something is broken if it does not do so soon."""
    return error.sqlstate == "XX000" or _moved(error)


def _moved(error: psycopg.Error) -> bool:
    """Tell whether a row was on its way to one table of days while another was made for it.

    It has the code of a broken rule, but no rule is named.
    """
    return error.sqlstate == "23514" and error.diag.constraint_name is None


def full_of_news(error: StoreError) -> bool:
    """Tell whether the server could keep no more notifications.

    It says so when it commits them; other things that are too much for it happen in a function.
    """
    cause = error.__cause__
    if not isinstance(cause, psycopg.Error) or cause.sqlstate != "54000":
        return False
    return cause.diag.context is None


def known_id(error: StoreError) -> bool:
    """Tell whether a job with the same id is there."""
    cause = error.__cause__
    if not isinstance(cause, psycopg.errors.UniqueViolation):
        return False
    return cause.diag.constraint_name == "job_pkey"


def breaks(error: psycopg.Error) -> bool:
    """Tell whether the connection on which this happened is of no more use."""
    code = error.sqlstate
    if code is None:
        # What cannot be written was never sent.
        return not isinstance(error, psycopg.DataError)
    return code.startswith(_ENDS) and code != _CANCELLED


def explain(error: psycopg.Error, where: str) -> StoreError:
    """Return the StoreError for an error of the driver at this address."""
    code = error.sqlstate
    if code is None:
        return _without_code(error, where)
    said = _said(error)
    for explanation in (_unusable, _refused, _damaged):
        found = explanation(code, said, where)
        if found is not None:
            return found
    return StoreError(
        f"PostgreSQL failed at {where}: {said} ({code})",
        hint="this is not expected; please report it with the text above",
        value=where,
    )


_OWNERS = "tokens are made by the owner of the store: name its address with --url"


def _refused(code: str, said: str, where: str) -> StoreError | None:
    """The server does not want this user, or not for this."""
    if code == "25006":
        return _read_only(where, f": {said}")
    if code == "42501":
        user = user_of(where)
        return StoreForbidden(
            f"the database user{f' `{user}`' if user else ''} may not do this at {where}: {said}",
            hint=_OWNERS
            if "table token" in said
            else f"run `lamplighter migrate --grant-run {user or 'USER'}` as the owner of the "
            "store to let this user run jobs (--grant-read: only look); making and migrating a "
            "store is for its owner",
            value=user or where,
        )
    remedy = _REMEDIES.get(code) or _REMEDIES.get(code[:2])
    if remedy is None:
        return None
    return StoreUnreachable(
        f"the PostgreSQL server at {where} cannot be used: {said}", hint=remedy, value=where
    )


_REMEDIES = {
    "28P01": "check user and password in the url",
    "28": "check user and password in the url, that this user exists and may log in, and what the "
    "server's pg_hba.conf allows",
    "3D": "create the database, or name another one in the url",
    "55000": "choose a database that takes connections, or let it: ALTER DATABASE … "
    "ALLOW_CONNECTIONS true",
    _PROTOCOL: "a pooler that refuses start-up parameters wants `options=…` out of the url and "
    "PGOPTIONS out of the environment: say ALTER ROLE … SET … instead; else check that a "
    "PostgreSQL server is what answers there",
    "08": "check host and port in the url, and that a PostgreSQL server is what answers there",
    "57": "wait until the server has started; what was asked may be repeated safely",
    "58": "check the server's disk and its log; what was asked may be repeated safely",
}


def _unusable(code: str, said: str, where: str) -> StoreError | None:
    """The server cannot do it now."""
    if code == "53100":
        return _full(where)
    if code == "53300":
        return _crowded(where, said)
    if code[:2] in ("40", "53") or code in ("25P03", "25P04", "55P03", "57014"):
        return StoreBusy(
            f"the PostgreSQL server at {where} could not do it in time: {said}",
            hint="look at its load, `max_connections`, its timeouts, and open transactions in "
            "pg_stat_activity; what was asked may be repeated safely",
            value=where,
        )
    return None


def _damaged(code: str, said: str, where: str) -> StoreError | None:
    """Something is not as it should be."""
    if code in ("42P01", "42703", "42883", "3F000"):
        return StoreDamaged(
            f"a part of the store at {where} is missing: {said}",
            hint="run `lamplighter migrate` to put functions back, with the newest version in use; "
            "restore lost tables from a backup",
            value=where,
        )
    if code in ("XX001", "XX002"):
        return StoreDamaged(
            f"the database at {where} is damaged: {said}",
            hint="restore it from a backup, or promote a standby",
            value=where,
        )
    if code == "2BP01":
        return StoreForeign(
            f"something that is not ours stands on a part of the store at {where}: {said}",
            hint="drop it, migrate, and make it anew",
            value=where,
        )
    return None


def _without_code(error: psycopg.Error, where: str) -> StoreError:
    said = _said(error)
    words = said.lower()
    if "no space left on device" in words:
        return _full(where)
    if "session is read-only" in words or "hot standby" in words:
        return _read_only(where, "")
    if "too many" in words or "remaining connection slots" in words:
        return _crowded(where, said)
    return StoreUnreachable(
        f"the PostgreSQL server at {where} cannot be reached: {said}",
        hint=_remedy(words),
        value=where,
    )


def _read_only(where: str, said: str) -> StoreReadOnly:
    return StoreReadOnly(
        f"the PostgreSQL server at {where} only reads{said}",
        hint="name the primary server; with several hosts in the url it is found by itself. If it "
        "is the primary, default_transaction_read_only was switched on: `lamplighter doctor` says "
        "where",
        value=where,
    )


def _crowded(where: str, said: str) -> StoreBusy:
    return StoreBusy(
        f"the PostgreSQL server at {where} has no free connection: {said}",
        hint="raise `max_connections`, use fewer processes, or a smaller pool=… in the url",
        value=where,
    )


def _full(where: str) -> StoreFull:
    return StoreFull(
        f"the disk of the PostgreSQL server at {where} is full",
        hint="free some space; nothing was half written, and work goes on by itself then",
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


# What the library puts before the server's own words: where it went, and how serious it is.
_PREFIX = re.compile(r"connection to server (at|on) .*? failed: (\w+:  )?")


def _said(error: psycopg.Error) -> str:
    """The first thing the server or the library said, on one line."""
    text = error.diag.message_primary or str(error) or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return text
    first = lines[0].removeprefix("connection failed: ").removeprefix("connection is bad: ")
    return _PREFIX.sub("", first, count=1) or first
