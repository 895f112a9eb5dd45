"""The door of a service: says who is asking, or refuses them."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from collections.abc import Sequence

from lamplighter.model.access import granted, prefix_of
from lamplighter.server.auth import (
    ANYBODY,
    LOCAL,
    Headers,
    Principal,
    bearer,
    check_local,
    invalid_token,
)
from lamplighter.server.gate import header
from lamplighter.server.jwts import Jwts
from lamplighter.server.sessions import Session, Sessions
from lamplighter.server.tokens import Tokens


class Door:
    """Lets requests in: by keys, tokens of the store, JWTs, and sessions that began with these.

    Where none of them is asked for, it lets in what comes from this machine.
    """

    def __init__(
        self,
        keys: Sequence[str] = (),
        *,
        tokens: Tokens | None = None,
        jwts: Jwts | None = None,
        sessions: Sessions | None = None,
        origins: frozenset[str] = frozenset(),
    ) -> None:
        self._keys = [hashlib.sha256(key.encode()).digest() for key in keys]
        self._tokens = tokens
        self._jwts = jwts
        self._sessions = sessions
        self._origins = origins
        self.asks = bool(self._keys) or tokens is not None or jwts is not None
        """Whether who is calling has to say who they are."""

    async def principal(
        self, headers: Headers, *, anybody: bool = False, changes: bool = False
    ) -> Principal:
        """Say who is asking, or refuse them; where ``anybody`` may ask, no token is needed.

        In a session, what ``changes`` something has to prove that a page of the session sent it.
        """
        if not self.asks:
            check_local(headers, anybody=anybody, origins=self._origins)
            return LOCAL
        if anybody:
            return ANYBODY
        if self._sessions is not None and header(headers, b"authorization") is None:
            session = self._sessions.read(headers)
            if session is not None:
                if changes:
                    self._sessions.check_change(session, headers)
                return await self.of_session(session)
        return await self._known(bearer(headers))

    async def of_session(self, session: Session) -> Principal:
        """Say who has a session, if it and what it began with are still good."""
        if self._sessions is not None:
            await self._sessions.check(session)
        match session.origin:
            case "token" | "code" if session.reference and self._tokens is not None:
                expires = session.origin == "token"
                found = await self._tokens.held(session.reference, expires=expires)
            case "key" if session.name in map(_key_name, self._keys):
                found = Principal(name=session.name)
            case "own":
                scopes = granted(session.scopes)
                found = Principal(name=session.name, scopes=scopes, tenant=session.tenant)
            case _:
                raise invalid_token("what the session began with is not taken any more", _HOW)
        return dataclasses.replace(found, session=session)

    async def login(self, token: str, headers: Headers) -> tuple[Principal, Session]:
        """Begin a session with a key, a token or a JWT, or refuse it."""
        principal, sessions = await self._known(token), self._sessions
        if sessions is None:
            raise invalid_token("this service has no sessions", _HOW)
        prefix = prefix_of(token)
        if prefix is not None:
            session = sessions.begun(
                origin="token", name=principal.name, reference=prefix, headers=headers
            )
        elif principal.name in map(_key_name, self._keys):
            session = sessions.begun(origin="key", name=principal.name, headers=headers)
        else:
            ends = None if self._jwts is None else (await self._jwts.good(token))[1]
            session = sessions.begun(
                origin="own",
                name=principal.name,
                scopes=sorted(principal.scopes),
                tenant=principal.tenant,
                ends=ends,
                headers=headers,
            )
        return principal, session

    async def _known(self, token: str) -> Principal:
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        # All are compared, always: the time taken says nothing about any of them.
        if sum(hmac.compare_digest(digest, key) for key in self._keys):
            return Principal(name=_key_name(digest))
        prefix = prefix_of(token)
        if prefix is not None and self._tokens is not None:
            return await self._tokens.principal(prefix, digest.hex())
        if token.count(".") == 2 and self._jwts is not None:
            return await self._jwts.principal(token)
        raise invalid_token(
            "it is none that this service knows",
            "send a key of the service, or a token that `lamplighter token create` has made for "
            "its store",
        )


_HOW = "log in again"


def _key_name(digest: bytes) -> str:
    return f"key-{digest.hex()[:12]}"
