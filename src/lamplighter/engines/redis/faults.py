"""Turns what Redis and the network say into errors that name the cause and the remedy."""

from __future__ import annotations

import os
import re
import socket
import ssl

from lamplighter.engines.redis import acl
from lamplighter.engines.redis.address import Address
from lamplighter.engines.redis.wire import ProtocolError, ReplyError
from lamplighter.model.errors import (
    StoreBusy,
    StoreError,
    StoreForbidden,
    StoreForeign,
    StoreFull,
    StoreLost,
    StoreReadOnly,
    StoreUnreachable,
)

_REPEAT = frozenset(
    {
        "BUSY",  # a script of somebody's runs for long
        "CLUSTERDOWN",
        "LOADING",  # the server reads its data after a start
        "MASTERDOWN",  # a replica that has lost its primary
        "NOREPLICAS",  # too few replicas follow at present
        "READONLY",  # a replica answered: somebody else is, or soon will be, the server
        "TRYAGAIN",
        "UNBLOCKED",  # the server turned into a replica while we waited
    }
)
_CROWDED = "max number of clients"
_COMMAND = re.compile(r"run the '([^']+)' command")
_IN_SCRIPT = re.compile("ACL failure in script|The user executing the script can't")
RETRY_SECONDS = 5.0
"""How long whoever is refused for want of memory should wait: old jobs have to be pruned first."""


class Lost(Exception):
    """A connection ended, or was silent for too long, before it gave an answer."""


class MemoryFull(StoreFull):
    """The memory of the server is used up, or so nearly that new jobs have to wait."""

    retry_after: float | None = RETRY_SECONDS


def may_pass(error: Exception) -> bool:
    """Tell whether the same call may well succeed a little later, on a new connection."""
    if isinstance(error, ReplyError):
        return code_of(error) in _REPEAT or _CROWDED in str(error)
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    if isinstance(error, ssl.SSLCertVerificationError):
        return False
    return isinstance(error, (Lost, OSError))


def is_lost(error: Exception) -> bool:
    """Tell whether a script found that the store is not there: see `lua/lib/guard.lua`."""
    return isinstance(error, ReplyError) and code_of(error) == "NOSTORE"


def breaks(error: ReplyError) -> bool:
    """Tell whether the connection on which this was said is of no more use.

    Behind its name there may be another server by now.
    """
    return code_of(error) in ("READONLY", "MASTERDOWN", "UNBLOCKED", "NOAUTH")


def code_of(error: ReplyError) -> str:
    """Return the word in capitals with which an error of the server begins."""
    return str(error).partition(" ")[0]


def explain(error: Exception, address: Address) -> StoreError:
    """Return the StoreError for what went wrong at this address."""
    where = address.shown
    if isinstance(error, ReplyError):
        return _said(error, address)
    if isinstance(error, ProtocolError):
        return StoreUnreachable(
            f"what answers at {where} is not a Redis server: {error}",
            hint="check host and port in the url, and whether the server wants TLS (rediss://…)",
            value=where,
        )
    return StoreUnreachable(
        f"the Redis server at {where} cannot be reached: {_words(error)}",
        hint=_remedy(error, tls=address.tls),
        value=where,
    )


def silent(address: Address, seconds: float) -> StoreUnreachable:
    """Say that nobody answered at all."""
    # A server that expects plain words waits for the end of a line that TLS never sends.
    tls = ", and that the server speaks TLS there (without, it is redis://…)" if address.tls else ""
    return StoreUnreachable(
        f"the Redis server at {address.shown} did not accept a connection in {seconds:g} s",
        hint=f"check host and port in the url, that nothing blocks the way{tls}",
        value=address.shown,
    )


def gone(address: Address) -> StoreLost:
    """Say that the server has lost the store that was opened."""
    where = address.shown
    return StoreLost(
        f"the store at {where} is gone: the Redis server answers, but it has lost its data, or is "
        "another one (emptied, or restarted or failed over without its data)",
        hint="restore the server's data; or start with an empty store: run `lamplighter migrate`, "
        "or write on_data_loss=recreate into the url; processes that run go on by themselves then",
        value=where,
    )


def torn(address: Address, key: str) -> StoreLost:
    """Say that a part of the store is missing."""
    return StoreLost(
        f"the store at {address.shown} has lost a part of its data: the key `{key}` is gone",
        hint="restore the server's data; or stop all its processes, delete the rest of its keys "
        f"({{{address.prefix}:*), and start with an empty store: run `lamplighter migrate`",
        value=address.shown,
    )


def redivided(address: Address, before: int, now: int) -> StoreLost:
    """Say that the store was made anew in a way that this process cannot follow."""
    return StoreLost(
        f"the store at {address.shown} is gone; the one in its place is divided into {now} shards, "
        f"not into {before}",
        hint="restart this process",
        value=address.shown,
    )


def _words(error: Exception) -> str:
    """Say what went wrong; the system's own words leave out which call it was."""
    if isinstance(error, OSError) and not isinstance(error, (socket.gaierror, ssl.SSLError)):
        return os.strerror(error.errno) if error.errno else str(error) or "no answer"
    return str(error) or type(error).__name__


def _remedy(error: Exception, *, tls: bool) -> str:
    if isinstance(error, socket.gaierror):
        return "check the host in the url, and the name service"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "name the authority that signed the server's certificate with ca=… in the url, and "
            "write the host as the certificate has it"
        )
    if isinstance(error, ssl.SSLError) or (tls and isinstance(error, Lost)):
        # Whoever does not like our certificate, or has to do without, says goodbye.
        return (
            "check that the server speaks TLS at this port (without, it is redis://…), and whether "
            "it wants a certificate of ours: cert=… and key=… in the url"
        )
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return "check the path of the socket in the url, that the server runs, and who may use it"
    wants = ", and whether the server wants TLS there (rediss://…)" if _closed(error) else ""
    return (
        "check host and port in the url, that the server runs, and that nothing blocks the way"
        + wants
    )


def _closed(error: Exception) -> bool:
    """Tell whether somebody was there, and hung up: TLS does when it is spoken to plainly."""
    return isinstance(error, (Lost, ConnectionResetError))


def _said(error: ReplyError, address: Address) -> StoreError:
    code, said, where = code_of(error), str(error), address.shown
    if code == "NOPERM" or _IN_SCRIPT.search(said):
        return _forbidden(said, address)
    for explanation in (_refused, _unusable, _unwritable, _foreign):
        found = explanation(code, said, where)
        if found is not None:
            return found
    return StoreError(
        f"Redis failed at {where}: {said}",
        hint="this is not expected; please report it with the text above",
        value=where,
    )


def forbidden(address: Address, what: str, right: str) -> StoreForbidden:
    """Say what the user may not do, and the line that gives the right."""
    user = address.user or "default"
    return StoreForbidden(
        f"the Redis user `{user}` may not {what} at {address.shown}",
        hint=f"let an administrator say: ACL SETUSER {user} {right}",
        value=user,
    )


def _forbidden(said: str, address: Address) -> StoreError:
    command = _COMMAND.search(said)
    if command is not None:
        return forbidden(address, f"run {command[1].upper()}", f"+{command[1]}")
    if "key" in said:
        keys = f"use the keys of the store, {{{address.prefix}:…"
        return forbidden(address, keys, acl.key_pattern(address))
    return forbidden(address, f"do this ({said})", acl.rule(address))


def _refused(code: str, said: str, where: str) -> StoreError | None:
    """The server does not want this user."""
    words = said.lower()
    if code in ("WRONGPASS", "NOAUTH") or words.startswith("err auth "):
        return _login(where, said)
    if "db index" in words:
        return StoreUnreachable(
            f"the database in {where} cannot be used: {said}",
            hint="name one that the server has (its setting `databases` says how many); a cluster "
            "has only 0",
            value=where,
        )
    if code == "DENIED":
        return StoreUnreachable(
            f"the Redis server at {where} only takes connections from its own machine: {said}",
            hint="give the server a password (requirepass) and the url the same, or connect on "
            "its machine",
            value=where,
        )
    return None


def _login(where: str, said: str) -> StoreError:
    return StoreUnreachable(
        f"the Redis server at {where} refuses the login: {said}",
        hint="check user and password in the url: redis://user:password@host, or "
        "redis://:password@host for the default user",
        value=where,
    )


def _unusable(code: str, said: str, where: str) -> StoreError | None:
    """The server cannot do it now."""
    if _CROWDED in said:
        return StoreBusy(
            f"the Redis server at {where} has no free connection: {said}",
            hint="raise `maxclients`, or use fewer processes",
            value=where,
        )
    if code in ("BUSY", "LOADING", "TRYAGAIN", "NOREPLICAS", "CLUSTERDOWN", "MASTERDOWN"):
        return StoreBusy(
            f"the Redis server at {where} could not do it in time: {said}",
            hint=_BUSY.get(code, "look at the server's log; what was asked may be repeated safely"),
            value=where,
        )
    if code in ("MOVED", "ASK", "CROSSSLOT"):
        return StoreUnreachable(
            f"the server at {where} is one of a cluster: {said}",
            hint="use a server of its own, or a primary with replicas",
            value=where,
        )
    return None


_BUSY = {
    "BUSY": "a script of another program runs for long: see SLOWLOG, or end it with SCRIPT KILL",
    "LOADING": "wait until the server has read its data; what was asked may be repeated safely",
    "NOREPLICAS": "look after the server's replicas: its setting `min-replicas-to-write` wants more"
    " of them",
}


def _unwritable(code: str, said: str, where: str) -> StoreError | None:
    """The server reads, but does not write."""
    if code in ("READONLY", "UNBLOCKED"):
        return StoreReadOnly(
            f"the Redis server at {where} only reads: {said}",
            hint="name the primary server, not one of its replicas",
            value=where,
        )
    if code == "OOM":
        return memory_full(f"the memory of the Redis server at {where} is used up", where)
    if code == "MISCONF":
        return StoreFull(
            f"the Redis server at {where} cannot write to its disk: {said}",
            hint="free some space and see the server's log; nothing was half written, and work "
            "goes on by itself then",
            value=where,
        )
    return None


def memory_full(cause: str, where: str) -> MemoryFull:
    """Refuse what would take more memory."""
    return MemoryFull(
        f"{cause}: nothing of this call was stored",
        hint=f"try again in {RETRY_SECONDS:g} s: jobs that are there go on, and prune makes room; "
        "if it stays so, raise `maxmemory`, or shorten the retention of finished jobs",
        value=where,
    )


def _foreign(code: str, said: str, where: str) -> StoreError | None:
    """Something is not as we left it."""
    if code == "WRONGTYPE":
        return StoreForeign(
            f"a key of the store at {where} was written by another program: {said}",
            hint="name another prefix in the url, for instance ?prefix=lamp",
            value=where,
        )
    if "unknown command" in said.lower():
        return StoreForbidden(
            f"the server at {where} does not know a command that is needed: {said}",
            hint="use Redis 7.0 or Valkey 7.2 or newer, where the command was not renamed",
            value=where,
        )
    return None
