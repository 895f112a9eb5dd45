"""Addresses as people may see them: in messages, logs and on screens.

An address may hold a password wherever its scheme allows one, and where somebody has put it by
mistake. What cannot be told from a secret is not shown.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

__all__ = ["redacted"]

HIDDEN = "***"
_SECRET = re.compile(r"pass|pwd|^pw$|secret|token|auth|cred|key", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{0,5}")
_SERVER = re.compile(r"[A-Za-z0-9.-]{1,253}:[0-9]{1,5}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}")


def redacted(url: str) -> str:
    """Return an address without its password, however it is written."""
    scheme, separator, rest = url.partition("://")
    if _SERVER.fullmatch(url) or not url:
        return url
    if not separator or not _SCHEME.fullmatch(scheme):
        # It may be anything, a password included.
        name, colon, _ = url.partition(":")
        return f"{name}:…" if colon and _SCHEME.fullmatch(name) else "…"
    web = scheme.lower() in {"http", "https"}
    base, mark, query = rest.partition("?")
    if "@" in query:
        # A password with a ? that should have been escaped; one with an @ is hidden to the last.
        base, mark, query = rest, "", ""
    who, at, place = base.rpartition("@")
    if at:
        user, colon, _ = who.partition(":")
        who = HIDDEN if web else f"{user}:{HIDDEN}" if colon else user
    place, hash_, _ = place.partition("#") if web else (place, "", "")
    base = f"{who}{at}{_without_odd_port(place)}{hash_ and '#…'}"
    pairs = "&".join(_pair(pair, web=web) for pair in query.split("&"))
    return f"{scheme}://{base}{mark}{pairs}"


def _without_odd_port(place: str) -> str:
    """Hide a port that is none: who forgets the host writes the password there."""
    if place.startswith("/"):
        return place
    server, _, _ = place.partition("/")
    host, colon, port = server.rpartition(":")
    if not colon or _NUMBER.fullmatch(port) or server.endswith("]") or "," in server:
        return place
    return f"{host}:{HIDDEN}"


def _pair(pair: str, *, web: bool) -> str:
    name, equals, value = pair.partition("=")
    hidden = value and (web or _SECRET.search(unquote(unquote(name))))
    return f"{name}{equals}{HIDDEN if hidden else value}"
