"""Why a server refused a connection: the code of its answer, whatever language it speaks.

PostgreSQL's library gives only the words of a refusal, which the server may write in any language.
With the code in hand a wrong password is told from a server that is just starting. The library can
write down what it receives; so a connection that was refused is tried once more with this on.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import tempfile

from psycopg import Error, OperationalError, errors, pq
from psycopg.conninfo import make_conninfo

from lamplighter import runtime
from lamplighter.engines.postgres.address import Address

_SECONDS = 5.0
# One line for each message; the fields of an error have a letter each.
_CODE = re.compile(rb'ErrorResponse\t.* C "([0-9A-Z]{5})" ')
# What the library says itself, in English, about a server that did not answer at all.
_NO_ANSWER = (
    "connection refused",
    "timeout expired",
    "could not translate host name",
    "no such file or directory",
    "no route to host",
    "network is unreachable",
    "session is read-only",
    "connection timeout",
)


async def with_code(error: Error, address: Address) -> Error:
    """Return the same error with the code of the server's refusal, if it gave one."""
    words = str(error).lower()
    if error.sqlstate is not None or any(one in words for one in _NO_ANSWER):
        return error
    code = await asyncio.to_thread(_ask, make_conninfo("", **address.parameters))
    if code is None:
        return error
    try:
        kind = errors.lookup(code)
    except KeyError:
        kind = type("Refused", (OperationalError,), {"sqlstate": code})
    return kind(str(error))


def _ask(conninfo: str) -> str | None:
    """Connect once more, and read the code off what the library has written down."""
    connection = pq.PGconn.connect_start(conninfo.encode())
    try:
        # Gone when closed: with some ways to log in, the password is in it.
        with tempfile.TemporaryFile() as notes:
            connection.trace(notes.fileno())
            _poll(connection)
            connection.untrace()
            found = _CODE.findall(os.pread(notes.fileno(), 1 << 20, 0))
        return found[-1].decode() if found else None
    except (Error, OSError):
        return None
    finally:
        connection.finish()


def _poll(connection: pq.abc.PGconn) -> None:
    end = runtime.monotonic() + _SECONDS
    while (left := end - runtime.monotonic()) > 0:
        status = connection.connect_poll()
        if status == pq.PollingStatus.READING:
            select.select([connection.socket], [], [], left)
        elif status == pq.PollingStatus.WRITING:
            select.select([], [connection.socket], [], left)
        else:
            return
