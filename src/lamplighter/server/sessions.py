"""Sessions of browsers: a signed cookie, good for a while, and ended in the store for everybody.

The cookie says who logged in and how; what they may do is looked up anew where that can change. It
is signed with a key that never leaves the service, so that nobody who can only write to the store
can make one. Whatever a session began with (a token, a login code, later another provider of
identities) is named by its origin.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from lamplighter import runtime
from lamplighter.model.names import shown
from lamplighter.server.errors import Forbidden, SessionOver
from lamplighter.server.gate import header
from lamplighter.server.remembered import forget_first

if TYPE_CHECKING:
    from lamplighter.client import Client
    from lamplighter.config import Settings

Headers = Iterable[tuple[bytes, bytes]]

FRESH = 30.0
"""Seconds for which a session that had not ended is taken to go on."""
MOST = 10_000
"""Sessions that are remembered."""
CSRF = b"x-csrf-token"
"""Header that proves that a change comes from the page of the session."""
ACTIVE = b"x-user-active"
"""Header of requests that a person has caused, in contrast to those that a page makes by itself."""

_OWN_PAGES = frozenset({b"same-origin", b"none"})
_NAME = "lamplighter"
_SIGNATURE = 32
_encoder = msgspec.json.Encoder()


class Session(msgspec.Struct, kw_only=True, frozen=True, array_like=True):
    """What the cookie says; times are in seconds since 1970."""

    id: str
    origin: str
    """How it began: `token`, `code`, `key` or `own`, where nothing else says who they are."""
    name: str
    reference: str = ""
    """Of a token or a code: its prefix."""
    scopes: tuple[str, ...] = ()
    tenant: str | None = None
    ends: int
    seen: int
    """When whoever has it was last seen to do something."""
    secure: bool = False


_decoder = msgspec.json.Decoder(Session)


@dataclass(frozen=True, slots=True)
class _Known:
    ended: bool
    at: float


class Sessions:
    """Begins, reads, renews and ends sessions."""

    def __init__(self, client: Client, settings: Settings) -> None:
        drawn = settings.http_secret or f"{runtime.random_bits(256):064x}"
        self._key = hashlib.sha256(b"session\0" + drawn.encode()).digest()
        self._client = client
        self.idle = settings.http_session_idle
        self.lifetime = settings.http_session_lifetime
        self._known: dict[str, _Known] = {}

    # ── the cookie ───────────────────────────────────────────────────────────────────────────

    def read(self, headers: Headers) -> Session | None:
        """Return the session that a request carries, or None; raise if its time is over."""
        host = (header(headers, b"host") or b"").decode("latin-1")
        cookies = _cookies(headers)
        for secure in (True, False):
            found = self._session(cookies.get(cookie_name(host, secure=secure)))
            # One that was begun over TLS is not taken from a cookie that anybody could have set.
            if found is not None and found.secure == secure:
                self._check_times(found)
                return found
        return None

    def _session(self, cookie: str | None) -> Session | None:
        if cookie is None:
            return None
        try:
            raw = base64.b64decode(cookie + "=" * (-len(cookie) % 4), b"-_", validate=True)
        except (ValueError, binascii.Error):
            return None
        signature, text = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._signature(text)):
            return None
        try:
            return _decoder.decode(text)
        except msgspec.DecodeError:
            # Of another version of the service: whoever has it logs in again.
            return None

    def _check_times(self, session: Session) -> None:
        now = runtime.now_ms() / 1000
        if now >= session.ends:
            raise _over("it has reached its longest time")
        if now >= session.seen + self.idle:
            raise _over(f"nothing was done for {self.idle / 60:g} minutes")

    def _signature(self, text: bytes) -> bytes:
        return hmac.digest(self._key, text, "sha256")

    def cookie(self, session: Session, headers: Headers, path: str) -> str:
        """Write the header that gives a session to a browser."""
        text = _encoder.encode(session)
        value = base64.urlsafe_b64encode(self._signature(text) + text).decode().rstrip("=")
        left = max(0, session.ends - runtime.now_ms() // 1000)
        return _cookie(headers, value, left, path, secure=session.secure)

    @staticmethod
    def no_cookie(session: Session, headers: Headers, path: str) -> str:
        """Write the header that takes it away again."""
        return _cookie(headers, "", 0, path, secure=session.secure)

    # ── its life ─────────────────────────────────────────────────────────────────────────────

    def begun(
        self,
        *,
        origin: str,
        name: str,
        headers: Headers,
        reference: str = "",
        scopes: Iterable[str] = (),
        tenant: str | None = None,
        ends: int | None = None,
    ) -> Session:
        """Make a new session; it ends with what it began with, if that is sooner."""
        now = runtime.now_ms() // 1000
        latest = now + int(self.lifetime)
        return Session(
            id=f"{runtime.random_bits(128):032x}",
            origin=origin,
            name=name,
            reference=reference,
            scopes=tuple(scopes),
            tenant=tenant,
            ends=latest if ends is None else min(latest, ends),
            seen=now,
            secure=(header(headers, b"origin") or b"").startswith(b"https://"),
        )

    async def check(self, session: Session) -> None:
        """Refuse a session that was ended, by whatever process."""
        known = self._known.get(session.id)
        now = runtime.boottime()
        if known is None or (not known.ended and now - known.at >= FRESH):
            engine = await self._client.engine()
            mark = _mark(session)
            ended = await self._client.repeatable(lambda: engine.access.spent(mark))
            known = self._remember(session.id, ended=ended, at=now)
        if known.ended:
            raise _over("it was logged out")

    async def end(self, session: Session) -> None:
        """End a session for all processes."""
        engine = await self._client.engine()
        mark, left = _mark(session), max(1, session.ends - runtime.now_ms() // 1000)
        keep_ms = (left + 3600) * 1000
        await self._client.repeatable(lambda: engine.access.spend(mark, session.id, keep_ms))
        self._remember(session.id, ended=True, at=runtime.boottime())

    def _remember(self, session_id: str, *, ended: bool, at: float) -> _Known:
        self._known.pop(session_id, None)
        self._known[session_id] = known = _Known(ended, at)
        forget_first(self._known, MOST)
        return known

    def renewed(self, session: Session, headers: Headers, *, changes: bool) -> Session | None:
        """Return the session as somebody who does something has it from now on.

        None: what a page asks by itself keeps no session alive; neither is it written each time.
        """
        now = runtime.now_ms() // 1000
        if now - session.seen < min(60, self.idle / 4):
            return None
        if not changes and header(headers, ACTIVE) is None:
            return None
        return msgspec.structs.replace(session, seen=now)

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    def csrf(self, session: Session) -> str:
        """Return what a page of this session has to send with each change."""
        return hmac.digest(self._key, b"csrf\0" + session.id.encode(), "sha256").hex()[:32]

    def check_change(self, session: Session, headers: Headers) -> None:
        """Refuse a change that does not come from a page of this session."""
        check_page(headers, known=True)
        given = (header(headers, CSRF) or b"").decode("latin-1")
        if not hmac.compare_digest(given.encode("latin-1"), self.csrf(session).encode()):
            raise Forbidden(
                "the request changes something in a session and does not prove that its page sent "
                "it: the header X-CSRF-Token is missing or is that of another session",
                hint="send `session.csrf` of GET /v1/me as X-CSRF-Token, or a token as "
                "`Authorization: Bearer …`",
            )


def check_page(headers: Headers, *, known: bool = False) -> None:
    """Refuse what the page of another site has sent; with ``known`` it has to be a page of ours."""
    site, origin = header(headers, b"sec-fetch-site"), header(headers, b"origin")
    if site is not None:
        own = site in _OWN_PAGES
    elif origin is not None:
        host = (header(headers, b"host") or b"").decode("latin-1")
        own = _netloc(origin.decode("latin-1")) == host.lower()
    else:
        own = not known
    if not own:
        page = (origin or site or b"").decode("latin-1")
        raise Forbidden(
            f"the request comes from a page of {shown(page)}, and only the console may use its "
            "session"
            if page
            else "the request does not say which page it comes from",
            hint="use the console at the address of the service, or send a token as "
            "`Authorization: Bearer …`",
            value=page or None,
        )


def cookie_name(host: str, *, secure: bool) -> str:
    """Return the name of the cookie: services on several ports of a host have one each."""
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    name = _NAME if port is None else f"{_NAME}-{port}"
    return f"__Host-{name}" if secure else name


def _cookie(headers: Headers, value: str, left: int, path: str, *, secure: bool) -> str:
    host = (header(headers, b"host") or b"").decode("latin-1")
    name = cookie_name(host, secure=secure)
    # The prefix `__Host-` allows no other path.
    where = "/; Secure" if secure else path or "/"
    return f"{name}={value}; Max-Age={left}; Path={where}; HttpOnly; SameSite=Strict"


def _cookies(headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        if name == b"cookie":
            for part in value.decode("latin-1").split(";"):
                key, equals, said = part.strip().partition("=")
                if equals:
                    found.setdefault(key, said)
    return found


def _netloc(origin: str) -> str:
    """Return host and port of an origin as the header Host has them."""
    return origin.partition("://")[2].lower()


def _mark(session: Session) -> str:
    return f"session {session.id}"


def _over(why: str) -> SessionOver:
    return SessionOver(
        f"the session is over: {why}",
        hint="log in again",
    )
