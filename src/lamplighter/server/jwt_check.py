"""What a JWT says, and whether that is enough. Pure: nothing here reads a clock or a file.

A header is believed only as far as it names the key; how a key is used stands with the key.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from lamplighter.model.access import Scope, granted
from lamplighter.model.errors import InvalidInput, InvalidName
from lamplighter.model.names import KEY_LIMIT, check_name, check_words
from lamplighter.server.auth import Principal, invalid_token, token_expired
from lamplighter.server.errors import InvalidToken

LONGEST = 8 * 1024
"""Characters that a token may have."""
LEEWAY = 10
"""Seconds by which the clocks of issuer and service may differ."""
KID = re.compile(r"[\w-]{1,64}", re.ASCII)
"""What the name of a key may be. It is looked up in a table, and nowhere else."""

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_REFUSED = ("crit", "b64", "cty", "zip", "enc", "jku", "jwk", "x5u", "x5c")
"""Headers that would have it read, or its key found, in another way."""
_LAST = 1 << 53
_HOW = "ask whoever issues your tokens for a new one"


@dataclass(frozen=True, slots=True)
class Header:
    """Which key a token says that it was signed with, and how."""

    kid: str
    algorithm: str


@dataclass(frozen=True, slots=True)
class Expected:
    """What every token that a key has signed must say."""

    issuer: str
    audience: str


def header_of(token: str) -> Header:
    """Read the header of a token."""
    if len(token) > LONGEST or not token.isascii():
        raise bad(f"it has more than {LONGEST:,} characters, or some that no token has")
    given = _object(_part(token.partition(".")[0]), "header")
    for name in _REFUSED:
        if name in given:
            raise bad(f"its header has `{name}`, which is not taken here")
    kid, algorithm, kind = given.get("kid"), given.get("alg"), given.get("typ", "JWT")
    if not isinstance(kid, str) or not KID.fullmatch(kid):
        raise bad("its header names no key: `kid` has to be letters, digits, `_` and `-`")
    if not isinstance(algorithm, str):
        raise bad("its header names no algorithm")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise bad("its header says that it is something else than a JWT")
    return Header(kid, algorithm)


def principal_of(payload: bytes, expected: Expected, now: float, longest: float) -> Principal:
    """Read the claims of a token whose signature is good, and say who has it."""
    claims = _object(payload, "payload")
    _check_times(claims, now, longest)
    if claims.get("iss") != expected.issuer:
        raise bad("`iss` is not the issuer of its key")
    if expected.audience not in _audiences(claims):
        raise bad("`aud` does not name this service")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= KEY_LIMIT:
        raise bad(f"`sub` has to be a text of 1 to {KEY_LIMIT} characters")
    try:
        name = check_words("subject", f"{subject}@{expected.issuer}")
    except InvalidInput:
        raise bad("`sub` has characters that cannot be noted") from None
    return Principal(name=name, scopes=_scopes(claims), tenant=_tenant(claims))


def ends_of(payload: bytes) -> int:
    """Return the time at which a token whose claims are good expires, in seconds since 1970."""
    return int(_object(payload, "payload")["exp"])


def _check_times(claims: Mapping[str, Any], now: float, longest: float) -> None:
    ends = _instant(claims, "exp")
    if ends is None:
        raise bad("it has no `exp`")
    if ends <= now - LEEWAY:
        raise token_expired()
    for name in ("nbf", "iat"):
        begins = _instant(claims, name)
        if begins is not None and begins > now + LEEWAY:
            raise bad(f"`{name}` is in the future")
    made = _instant(claims, "iat")
    if ends - (now if made is None else min(made, now)) > longest + LEEWAY:
        raise bad(f"it is good for longer than {longest:g} s")


def _instant(claims: Mapping[str, Any], name: str) -> int | None:
    if name not in claims:
        return None
    value = claims[name]
    if type(value) is not int or not 0 <= value <= _LAST:
        raise bad(f"`{name}` is no whole number of seconds since 1970")
    return value


def _audiences(claims: Mapping[str, Any]) -> Sequence[object]:
    given: object = claims.get("aud")
    return cast("list[object]", given) if isinstance(given, list) else [given]


def _scopes(claims: Mapping[str, Any]) -> frozenset[Scope]:
    given: object = claims.get("scope", claims.get("scp", ""))
    if isinstance(given, str):
        return granted(given.split())
    if isinstance(given, list):
        return granted(one for one in cast("list[object]", given) if isinstance(one, str))
    raise bad("`scope` is neither a text nor a list")


def _tenant(claims: Mapping[str, Any]) -> str | None:
    if "tenant" not in claims:
        return None
    try:
        return check_name("tenant", claims["tenant"])
    except InvalidName:
        # None at all would mean all of them.
        raise bad("`tenant` is not the name of a tenant") from None


def _part(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise bad("it is not written as a JWT is") from None


def _object(text: bytes, what: str) -> dict[str, Any]:
    """Read an object of JSON in which nothing stands twice."""
    try:
        found: object = json.loads(
            text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_nothing
        )
    except (ValueError, RecursionError):
        raise bad(f"its {what} is not JSON, or says something twice") from None
    if not isinstance(found, dict):
        raise bad(f"its {what} is no object of JSON")
    return cast("dict[str, Any]", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _nothing(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def bad(why: str) -> InvalidToken:
    """Make the error for a JWT that is not good."""
    return invalid_token(why, _HOW)
