"""Where the service is, and what is shown to it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidOption, InvalidUrl
from lamplighter.model.names import shown

TOKEN = "LAMPLIGHTER_TOKEN"  # noqa: S105 - the name of the variable
_API = "/v1"


def checked(url: str) -> str:
    """Check the address of a service; that of its API, with `/v1` at its end, means the same."""
    parts = _parts(url)
    if parts is None:
        public = _public(url)
        raise InvalidUrl(
            f"{shown(public)} is not the address of an HTTP service",
            hint='give it as in "http://127.0.0.1:8080" or "https://jobs.example.com"',
            value=public,
        )
    if parts.fragment or "@" in parts.netloc:
        # Not quoted: what stands there may be a key, and errors end up in logs.
        raise InvalidUrl(
            f"the address of the service at {shown(parts.hostname)} has a user or a part behind "
            "`#` in it, and neither is shown to the service",
            hint=f"leave it out, and give the token as token=…, {TOKEN} or {TOKEN}_FILE",
            value=parts.hostname,
        )
    path = parts.path.rstrip("/").removesuffix(_API).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _public(url: object) -> object:
    return redacted(url) if isinstance(url, str) else url


def _parts(url: object) -> SplitResult | None:
    """Take an address apart, if it may be that of a service."""
    text = url.strip() if isinstance(url, str) else ""
    if not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
        # A port that is none raises ValueError only when it is asked for.
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if fits and not parts.query else None


def token_of(given: str | None) -> str | None:
    """Return the token: the one given, that of the environment, or of the file named there."""
    found = given
    if found is None:
        found = os.environ.get(TOKEN)
    if found is None and (named := os.environ.get(f"{TOKEN}_FILE")):
        try:
            found = Path(named).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidOption(
                f"{TOKEN}_FILE names {shown(named)}, which cannot be read: {error}",
                hint="mount the token there, or unset the variable",
                value=named,
            ) from error
    if found is None:
        return None
    token = found.strip()
    if not token.isascii() or not token.isprintable() or " " in token or not token:
        # Not quoted: errors end up in logs.
        raise InvalidOption(
            "the token is empty, or has characters that no token has",
            hint=f"give it as it was created; {TOKEN} and {TOKEN}_FILE are read too",
        )
    return token
