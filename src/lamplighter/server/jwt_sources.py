"""Where keys for JWTs come from: files that are read again when they change, and addresses."""

from __future__ import annotations

import asyncio
import http.client
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from lamplighter import runtime
from lamplighter.model.addresses import redacted
from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import shown
from lamplighter.server.auth import is_loopback
from lamplighter.server.jwt_check import Expected
from lamplighter.server.jwt_keys import Loaded, VerifyKey, jwks_of

log = logging.getLogger("lamplighter.server")

GLANCE = 1.0
"""Seconds between two looks at whether files have changed."""
RENEW = 300.0
"""Seconds after which keys are fetched again although none was missing."""
PAUSE = 30.0
"""Seconds between two fetches, whatever is asked for."""
TRUSTED = 3600.0
"""Seconds for which keys are good whose address does not answer."""
PATIENCE = 5.0
"""Seconds that a fetch may take."""
BRIEFLY = 0.5
"""Seconds of it for which those wait whose key is known; then that key is good enough."""
MOST_BYTES = 256 * 1024


class Source(Protocol):
    """Knows keys by their names."""

    async def key(self, kid: str) -> VerifyKey | None:
        """Return a key, or None."""
        ...


class WatchedFile:
    """Keys of a file. It is read at once, and again when it, or a file it names, has changed."""

    def __init__(self, path: Path, read: Callable[[Path], Loaded]) -> None:
        self._path = path
        self._read = read
        # Taken before the file is read: what changes meanwhile is seen at the next look.
        self._stamp = _stamp([path])
        self._loaded = read(path)
        self._looked_at = runtime.monotonic()

    async def key(self, kid: str) -> VerifyKey | None:
        """Return a key as the file has it now; what cannot be used leaves the keys as they were."""
        now = runtime.monotonic()
        if now - self._looked_at >= GLANCE:
            self._looked_at = now
            await asyncio.to_thread(self._refresh)
        return self._loaded.keys.get(kid)

    def _refresh(self) -> None:
        stamp = _stamp(self._loaded.files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._loaded = self._read(self._path)
        except InvalidOption as error:
            log.error("%s; the keys stay as they were", error.cause)  # noqa: TRY400 - told in full
            return
        log.info("read %d keys from %s", len(self._loaded.keys), self._path)


def _stamp(files: Iterable[Path]) -> list[tuple[int, int, int] | None]:
    """Tell one state of files from another."""
    found: list[tuple[int, int, int] | None] = []
    for path in files:
        try:
            seen = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
    return found


class JwksAddress:
    """Keys at an address: fetched when they are needed, and when one is asked for that is new."""

    def __init__(self, url: str, expected: Expected, fetch: Callable[[str], bytes]) -> None:
        self._url = url
        self._expected = expected
        self._fetch = fetch
        self._keys: Mapping[str, VerifyKey] = {}
        self._got_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._began = 0.0

    async def key(self, kid: str) -> VerifyKey | None:
        """Return a key as its address has it, or had it not long ago."""
        if self._is_due(kid):
            await self._wait(None if self._known(kid) is None else BRIEFLY)
        return self._known(kid)

    def _known(self, kid: str) -> VerifyKey | None:
        trusted = runtime.boottime() - self._got_at <= TRUSTED
        return self._keys.get(kid) if trusted else None

    async def _wait(self, seconds: float | None) -> None:
        """Wait until keys are fetched, but not longer than so long after that has begun.

        Whoever comes while one fetches waits for that, and does not fetch again; whoever goes
        leaves it to the others.
        """
        if self._fetching is None or self._fetching.done():
            self._began = runtime.boottime()
            self._fetching = runtime.spawn(self._renew(), name="jwks")
        if seconds is not None:
            seconds = max(0.0, self._began + seconds - runtime.boottime())
        await asyncio.wait({self._fetching}, timeout=seconds)

    def _is_due(self, kid: str) -> bool:
        now = runtime.boottime()
        wanted = kid not in self._keys or now - self._got_at > RENEW
        return wanted and now - self._tried_at >= PAUSE

    async def _renew(self) -> None:
        began = runtime.boottime()
        try:
            async with asyncio.timeout(2 * PATIENCE):
                text = await asyncio.to_thread(self._fetch, self._url)
            self._keys = jwks_of(text, self._expected)
        except (OSError, TimeoutError, ValueError, http.client.HTTPException) as error:
            log.warning("no keys from %s: %s", redacted(self._url), error)
        else:
            self._got_at = began
        finally:
            # Not before: who comes meanwhile is to wait for this.
            self._tried_at = began


def check_jwks_url(url: str) -> str:
    """Return an address at which nobody can put keys of their own, or refuse it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
        parts = urlsplit("")
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    # Blanks and control characters are no part of an address, and errors of the client quote them.
    if not host or not safe or any(one.isspace() or not one.isprintable() for one in url):
        raise InvalidOption(
            f"{shown(redacted(url))} is no address from which keys can be taken",
            hint="give a file, an address with https://, or http:// on this machine",
            value=redacted(url),
        )
    return url


def fetch(url: str) -> bytes:
    """Fetch a small document within some seconds; nothing else is asked, wherever it may lead."""
    parts = urlsplit(url)
    end = runtime.monotonic() + PATIENCE
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=PATIENCE, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    try:
        query = f"?{parts.query}" if parts.query else ""
        connection.request("GET", (parts.path or "/") + query, headers={"Accept": "*/*"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise ValueError(f"it answered {response.status}")
        return _read(response, end)
    finally:
        connection.close()


def _read(response: http.client.HTTPResponse, end: float) -> bytes:
    found = bytearray()
    while chunk := response.read1(16 * 1024):
        found += chunk
        if len(found) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        if runtime.monotonic() > end:
            raise TimeoutError(f"it took more than {PATIENCE:g} s")
    return bytes(found)
