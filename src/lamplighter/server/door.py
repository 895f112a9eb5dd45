"""The door of a service: says who is asking, or refuses them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from lamplighter.model.access import prefix_of
from lamplighter.server.auth import (
    ANYBODY,
    LOCAL,
    Headers,
    Principal,
    bearer,
    check_local,
    invalid_token,
)
from lamplighter.server.jwts import Jwts
from lamplighter.server.tokens import Tokens


class Door:
    """Lets requests in: by keys, by tokens of the store, by JWTs.

    Where none of them is asked for, it lets in what comes from this machine.
    """

    def __init__(
        self, keys: Sequence[str] = (), *, tokens: Tokens | None = None, jwts: Jwts | None = None
    ) -> None:
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]
        self._tokens = tokens
        self._jwts = jwts
        self.asks = bool(self._keys) or tokens is not None or jwts is not None
        """Whether who is calling has to say who they are."""

    async def principal(self, headers: Headers, *, anybody: bool = False) -> Principal:
        """Say who is asking, or refuse them; where ``anybody`` may ask, no token is needed."""
        if not self.asks:
            check_local(headers, anybody=anybody)
            return LOCAL
        return ANYBODY if anybody else await self._known(bearer(headers))

    async def _known(self, token: str) -> Principal:
        digest = hashlib.sha256(token.encode("latin-1"))
        # All are compared, always: the time taken says nothing about any of them.
        if sum(hmac.compare_digest(digest.digest(), key) for key in self._keys):
            return Principal(name=f"key-{digest.hexdigest()[:12]}")
        prefix = prefix_of(token)
        if prefix is not None and self._tokens is not None:
            return await self._tokens.principal(prefix, digest.hexdigest())
        if token.count(".") == 2 and self._jwts is not None:
            return await self._jwts.principal(token)
        raise invalid_token(
            "it is none that this service knows",
            "send a key of the service, or a token that `lamplighter token create` has made for "
            "its store",
        )
