"""Who is asking, and what they may do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lamplighter.model.access import Scope
from lamplighter.model.errors import InvalidOption
from lamplighter.model.hosts import hostname, is_loopback
from lamplighter.model.names import shown
from lamplighter.server.errors import (
    Forbidden,
    InvalidToken,
    MissingToken,
    TokenExpired,
    WrongHost,
)
from lamplighter.server.gate import header

if TYPE_CHECKING:
    from lamplighter.server.sessions import Session

__all__ = [
    "ANYBODY",
    "LOCAL",
    "Headers",
    "Principal",
    "Scope",
    "bearer",
    "check_address",
    "check_keys",
    "check_local",
    "check_scope",
    "check_secret",
    "check_whole",
    "invalid_token",
    "is_loopback",
    "read_keys",
    "token_expired",
]

SHORTEST_KEY = 32
"""Characters of a key that nobody can guess."""

_KEY = re.compile(r"[!-~]+")
_FOREIGN = frozenset({b"cross-site", b"same-site"})
"""How a browser calls the sites of pages that are not ours; another port is the same site."""
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="lamplighter"'}

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever is asking."""

    name: str
    """Stands in the notes of operators' changes, and keeps idempotency keys apart."""
    scopes: frozenset[Scope] = frozenset(Scope)
    tenant: str | None = None
    """The only tenant whose jobs they see; None: all."""
    session: Session | None = field(default=None, compare=False, repr=False)
    """Of a browser that has logged in."""

    def has(self, scope: Scope) -> bool:
        """Return whether they may do what this scope allows."""
        return scope in self.scopes

    def sees(self, tenant: str) -> bool:
        """Tell whether jobs of this tenant exist for them."""
        return self.tenant in {None, tenant}


LOCAL = Principal(name="local")
"""Whoever reaches a service that asks for nothing."""
ANYBODY = Principal(name="anybody", scopes=frozenset())
"""Whoever calls a route that is for all."""


def bearer(headers: Headers) -> str:
    """Return the bearer token of a request, or say that there is none."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) > 1:
        # What stands between a caller and the service may have looked at another of them.
        raise invalid_token(
            f"the request carries {len(given)} headers `Authorization`", "send one of them"
        )
    scheme, _, token = (given[0] if given else b"").partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        raise MissingToken(
            "missing token: the request carries no bearer token",
            hint="send a key or a token as `Authorization: Bearer …`",
            headers=_CHALLENGE,
        )
    return token.strip().decode("latin-1")


def invalid_token(why: str, hint: str) -> InvalidToken:
    """Make the error for a token that is not good; the token itself is not quoted."""
    return InvalidToken(f"invalid token: {why}", hint=hint, headers=_refusal("invalid token"))


def token_expired() -> TokenExpired:
    """Make the error for a token that was good once."""
    return TokenExpired(
        "token expired: its time is over",
        hint="get a new token, and send that one",
        headers=_refusal("token expired"),
    )


def _refusal(why: str) -> dict[str, str]:
    challenge = _CHALLENGE["WWW-Authenticate"]
    told = f'error="invalid_token", error_description="{why}"'
    return {"WWW-Authenticate": f"{challenge}, {told}"}


def check_whole(principal: Principal) -> None:
    """Refuse whoever has a tenant of their own what is about all of them."""
    if principal.tenant is not None:
        raise Forbidden(
            f"{shown(principal.name)} is only for tenant {shown(principal.tenant)}, and this is "
            "about all tenants",
            hint="ask for a token that is for no single tenant",
            value=principal.tenant,
        )


def check_scope(principal: Principal, scope: Scope | None) -> None:
    """Refuse who may not do this."""
    if scope is not None and scope not in principal.scopes:
        raise Forbidden(
            f"{shown(principal.name)} does not have the scope {shown(scope.value)}",
            hint="ask for a token with this scope",
            value=scope.value,
        )


def check_local(
    headers: Headers, *, anybody: bool = False, origins: frozenset[str] = frozenset()
) -> None:
    """Refuse what a page of some other site has sent, in a browser on this machine.

    Without keys the service trusts whoever reaches the loopback address. A browser does so for any
    page, but it tells the host and the origin that the page believes to speak with. Where
    ``anybody`` may ask, links of other sites may lead. Pages of ``origins`` were allowed by name.
    """
    host = (header(headers, b"host") or b"").decode("latin-1")
    if not is_loopback(hostname(f"//{host}")):
        raise WrongHost(
            f"the request is meant for the host {shown(host)}, and this service is only for "
            "programs on its own machine",
            hint="use http://127.0.0.1 or http://localhost, or ask for tokens: --require-token",
            value=host,
        )
    origin = header(headers, b"origin")
    if origin is not None and origin.decode("latin-1") in origins:
        return
    away = origin is not None and not is_loopback(hostname(origin.decode("latin-1")))
    # Requests that only read may come without their origin, and pages of this machine are foreign
    # too: what serves them has another port.
    if away or (not anybody and header(headers, b"sec-fetch-site") in _FOREIGN):
        page = None if origin is None else origin.decode("latin-1")
        raise Forbidden(
            f"the request comes from a page of {'another site' if page is None else shown(page)}",
            hint="start the service with --require-token, and send a token",
            value=page,
        )


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
        _check_key(key, number, f"line {number} of the key file {shown(str(path))}")
    return [key for _, key in keys]


def check_keys(keys: Sequence[str]) -> None:
    """Refuse keys that can be guessed, and a single one where a list is meant."""
    if isinstance(keys, (str, bytes)):
        raise InvalidOption(
            "`keys` is a text, each character of which would be a key",
            hint="give a list: `keys=[key]`",
        )
    for number, key in enumerate(keys):
        _check_key(key, number, f"keys[{number}]")


def _check_key(key: object, number: int, where: str) -> None:
    if not isinstance(key, str) or len(key) < SHORTEST_KEY or not _KEY.fullmatch(key):
        # The key itself is not quoted: errors end up in logs.
        raise InvalidOption(
            f"{where} is no key: it has fewer than {SHORTEST_KEY} characters, or some that are "
            "not plain ASCII",
            hint=_HOW,
            value=number,
        )


_HOW = f"use keys of at least {SHORTEST_KEY} characters, one per line: `openssl rand -hex 32`"


def check_secret(secret: str) -> None:
    """Refuse a secret that can be guessed; where there is none, one is drawn."""
    if secret and (len(secret) < SHORTEST_KEY or len(set(secret)) < SHORTEST_KEY // 4):
        raise InvalidOption(
            f"the setting `http_secret` can be guessed: it has fewer than {SHORTEST_KEY} "
            "characters, or too few different ones",
            hint="draw one with `openssl rand -hex 32`, or leave it out",
        )


def check_address(host: str, *, asks: bool) -> None:
    """Refuse to be reached from other machines by everybody."""
    if not asks and not is_loopback(host):
        raise InvalidOption(
            f"the address {shown(host)} can be reached from other machines, and everybody there "
            "could run jobs: there is no authentication",
            hint="give --require-token, --key-file, --jwt-keys or --jwks, or leave --host at "
            "127.0.0.1",
            value=host,
        )
