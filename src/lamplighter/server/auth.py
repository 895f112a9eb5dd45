"""Who is asking, and what they may do."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server.errors import Forbidden, InvalidToken, MissingToken, WrongHost
from lamplighter.server.gate import header

SHORTEST_KEY = 32
"""Characters of a key that nobody can guess."""

_REMEMBERED = 256
"""Hosts of which is remembered what they are: nearly all requests name the same."""
_KEY = re.compile(r"[!-~]+")
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="lamplighter"'}

Headers = Iterable[tuple[bytes, bytes]]


class Scope(StrEnum):
    """What a route asks of whoever calls it."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    SCHEDULES_READ = "schedules:read"
    SCHEDULES_WRITE = "schedules:write"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever is asking."""

    name: str
    """Stands in the notes of operators' changes, and keeps idempotency keys apart."""
    scopes: frozenset[Scope] = frozenset(Scope)
    tenant: str | None = None
    """The only tenant whose jobs they see; None: all."""

    def sees(self, tenant: str) -> bool:
        """Tell whether jobs of this tenant exist for them."""
        return self.tenant in {None, tenant}


class Door:
    """Lets requests in, by the keys that were given, or from this machine where there are none."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]

    def principal(self, headers: Headers, *, anybody: bool = False) -> Principal:
        """Say who is asking, or refuse them; where ``anybody`` may ask, no key is needed."""
        if not self._keys:
            _check_local(headers)
            return Principal(name="local")
        if anybody:
            return Principal(name="anybody", scopes=frozenset())
        given = header(headers, b"authorization")
        scheme, _, token = (given or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            raise MissingToken(
                "the request carries no bearer token",
                hint="send one of the keys as `Authorization: Bearer KEY`",
                headers=_CHALLENGE,
            )
        digest = hashlib.sha256(token.strip()).digest()
        # All are compared, always: the time taken says nothing about any of them.
        if not sum(hmac.compare_digest(digest, key) for key in self._keys):
            raise InvalidToken(
                "the bearer token is not a key of this service",
                hint="send one of the keys that the service was started with",
                headers=_CHALLENGE,
            )
        return Principal(name=f"key-{digest.hex()[:12]}")


def check_scope(principal: Principal, scope: Scope | None) -> None:
    """Refuse who may not do this."""
    if scope is not None and scope not in principal.scopes:
        raise Forbidden(
            f"{shown(principal.name)} does not have the scope {shown(scope.value)}",
            hint="ask for a token with this scope",
            value=scope.value,
        )


def _check_local(headers: Headers) -> None:
    """Refuse what a page of some other site has sent, in a browser on this machine.

    Without keys the service trusts whoever reaches the loopback address. A browser does so for any
    page, but it tells the host and the origin that the page believes to speak with.
    """
    host = (header(headers, b"host") or b"").decode("latin-1")
    if not is_loopback(_hostname(f"//{host}")):
        raise WrongHost(
            f"the request is meant for the host {shown(host)}, and this service is only for "
            "programs on its own machine",
            hint="use http://127.0.0.1 or http://localhost, or start it with --key-file",
            value=host,
        )
    origin = header(headers, b"origin")
    if origin is not None and not is_loopback(_hostname(origin.decode("latin-1"))):
        shown_origin = origin.decode("latin-1")
        raise Forbidden(
            f"the request comes from a page of {shown(shown_origin)}",
            hint="start the service with --key-file, and send a key",
            value=shown_origin,
        )


@lru_cache(maxsize=_REMEMBERED)
def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


@lru_cache(maxsize=_REMEMBERED)
def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, and cannot be reached from others."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_keys(path: Path) -> list[str]:
    """Read a file of keys, one per line; empty lines and those that begin with # do not count."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(
            f"the key file {shown(str(path))} cannot be read: {error}",
            hint="give a readable text file with one key per line",
            value=str(path),
        ) from error
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    keys = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not keys:
        raise InvalidOption(
            f"the key file {shown(str(path))} has no key in it", hint=_HOW, value=str(path)
        )
    for number, key in keys:
        if len(key) < SHORTEST_KEY or not _KEY.fullmatch(key):
            # The key itself is not quoted: errors end up in logs.
            raise InvalidOption(
                f"line {number} of the key file {shown(str(path))} is no key: it has fewer than "
                f"{SHORTEST_KEY} characters, or some that are not plain ASCII",
                hint=_HOW,
                value=number,
            )
    return [key for _, key in keys]


_HOW = f"write keys of at least {SHORTEST_KEY} characters, one per line: `openssl rand -hex 32`"


def check_address(host: str, keys: Sequence[str]) -> None:
    """Refuse to be reached from other machines by everybody."""
    if not keys and not is_loopback(host):
        raise InvalidOption(
            f"the address {shown(host)} can be reached from other machines, and everybody there "
            "could run jobs: without keys there is no authentication",
            hint="give --key-file with a key per line, or leave --host at 127.0.0.1",
            value=host,
        )
