"""JWTs: signed by others, checked here, and remembered for a moment."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from jwt import PyJWTError
from jwt.api_jws import PyJWS

from lamplighter import runtime
from lamplighter.model.errors import InvalidOption
from lamplighter.server import jwt_check
from lamplighter.server.auth import Principal, token_expired
from lamplighter.server.jwt_check import LEEWAY, Expected, Header, bad
from lamplighter.server.jwt_keys import ALGORITHMS, VerifyKey, read_jwks_file, read_key_file
from lamplighter.server.jwt_sources import (
    JwksAddress,
    Source,
    WatchedFile,
    check_jwks_url,
    fetch,
)
from lamplighter.server.remembered import forget_first

REMEMBERED = 30.0
"""Seconds for which a token that was good is not checked again, but for its end."""
MOST = 10_000
"""Tokens that are remembered."""

_Seen = tuple[float, int, Principal]
"""Until when it is remembered, when it expires, and who has it."""


class Jwts:
    """Knows whose JWTs are good."""

    def __init__(
        self, sources: Sequence[Source], longest: float, *, needs_tenant: bool = False
    ) -> None:
        self._sources = sources
        self._needs_tenant = needs_tenant
        self._longest = longest
        self._jws = PyJWS(algorithms=list(ALGORITHMS))
        self._seen: dict[bytes, _Seen] = {}

    async def principal(self, token: str) -> Principal:
        """Say who has this token, or refuse it."""
        return (await self.good(token))[0]

    async def good(self, token: str) -> tuple[Principal, int]:
        """Say who has this token and when it expires, in seconds since 1970, or refuse it."""
        digest = hashlib.sha256(token.encode()).digest()
        seen = self._seen.get(digest)
        if seen is not None and seen[0] > runtime.boottime():
            if seen[1] <= runtime.now_ms() / 1000 - LEEWAY:
                raise token_expired()
            return seen[2], seen[1]
        header = jwt_check.header_of(token)
        key = await self._key(header)
        payload = self._payload(token, key)
        found = jwt_check.principal_of(
            payload, key.expected, runtime.now_ms() / 1000, self._longest
        )
        if self._needs_tenant and found.tenant is None:
            raise bad("it has no claim `tenant`, which the setting `http_jwt_tenant` asks for")
        ends = jwt_check.ends_of(payload)
        self._remember(digest, ends, found)
        return found, ends

    async def _key(self, header: Header) -> VerifyKey:
        for source in self._sources:
            found = await source.key(header.kid)
            if found is not None:
                # The key says how it is used, and the token may only agree.
                if header.algorithm != found.algorithm:
                    raise bad("its algorithm is not that of its key")
                return found
        raise bad("its `kid` names no key of this service")

    def _payload(self, token: str, key: VerifyKey) -> bytes:
        """Check the signature and give what it is for."""
        try:
            checked = self._jws.decode_complete(token, key.key, algorithms=[key.algorithm])
        except (PyJWTError, ValueError, TypeError):
            raise bad("its signature is wrong") from None
        return bytes(checked["payload"])

    def _remember(self, digest: bytes, ends: int, found: Principal) -> None:
        self._seen.pop(digest, None)
        self._seen[digest] = (runtime.boottime() + REMEMBERED, ends, found)
        forget_first(self._seen, MOST)


def jwts_of(
    key_files: Sequence[Path],
    key_sets: Sequence[str],
    *,
    issuer: str | None,
    audience: str | None,
    longest: float,
    needs_tenant: bool = False,
) -> Jwts | None:
    """Read where keys come from; None: nowhere."""
    sources: list[Source] = [WatchedFile(path, read_key_file) for path in key_files]
    if key_sets:
        if not issuer or not audience:
            raise InvalidOption(
                "--jwks was given without the issuer and the audience of its tokens",
                hint="give --jwt-issuer and --jwt-audience: tokens for other services are refused "
                "by them",
            )
        sources += [_key_set(place, Expected(issuer, audience)) for place in key_sets]
    return Jwts(sources, longest, needs_tenant=needs_tenant) if sources else None


def _key_set(place: str, expected: Expected) -> Source:
    if "://" in place:
        return JwksAddress(check_jwks_url(place), expected, fetch)
    return WatchedFile(Path(place), lambda path: read_jwks_file(path, expected))
