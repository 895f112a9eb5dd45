"""Where the service is, and what is shown to it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from lamplighter.model.errors import InvalidOption, InvalidUrl
from lamplighter.model.names import shown

TOKEN = "LAMPLIGHTER_TOKEN"  # noqa: S105 - the name of the variable


def checked(url: str) -> str:
    """Check the address of a service."""
    try:
        parts = urlsplit(url)
        # A port that is none raises ValueError only when it is asked for.
        fits = parts.scheme in {"http", "https"} and parts.hostname and not parts.query
        fits = fits and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise InvalidUrl(
            f"{shown(url)} is not the address of an HTTP service",
            hint='give it as in "http://127.0.0.1:8080" or "https://jobs.example.com"',
            value=url,
        )
    return url.rstrip("/")


def token_of(given: str | None) -> str | None:
    """Give the token: the one given, that of the environment, or what a file named there holds."""
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
