"""The console's files, as they were built: read once, and served from memory."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONSOLE = Path(__file__).with_name("console")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""What a page of ours may do: load and call what comes from here, and nothing else."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
FOR_EVER = "public, max-age=31536000, immutable"
"""For files whose name changes with their content."""
ASK_AGAIN = "no-cache"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    content: bytes
    media: str
    tag: str
    """Tells this content from others: the header `ETag`."""
    packed: bytes | None = None
    """The content in gzip, if that is worth it."""

    def for_(self, accepted: bytes | None) -> tuple[bytes, dict[str, str]]:
        """Return the content as a caller takes it, and the headers that say how it is written."""
        if self.packed is None:
            return self.content, {}
        vary = {"Vary": "Accept-Encoding"}
        if takes_gzip(accepted):
            return self.packed, {**vary, "Content-Encoding": "gzip"}
        return self.content, vary


def asset(content: bytes, media: str) -> Asset:
    """Make something that can be served again and again."""
    digest = hashlib.blake2b(content, digest_size=12).hexdigest()
    packed = gzip.compress(content, mtime=0)
    return Asset(content, media, f'"{digest}"', packed if len(packed) < len(content) else None)


def takes_gzip(accepted: bytes | None) -> bool:
    """Return whether the header `Accept-Encoding` takes gzip."""
    for each in (accepted or b"").decode("latin-1").lower().split(","):
        name, _, weight = each.partition(";")
        if name.strip() in {"gzip", "*"}:
            return weight.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


@cache
def built(folder: Path = CONSOLE) -> Mapping[str, Asset]:
    """Read all files of the console, by their path below the folder; none if it was not built."""
    found = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES and path.is_file())
    return {
        path.relative_to(folder).as_posix(): asset(path.read_bytes(), _TYPES[path.suffix])
        for path in found
    }


def is_known(tags: bytes | None, tag: str) -> bool:
    """Tell whether the header `If-None-Match` names what would be sent."""
    if tags is None:
        return False
    named = {each.strip().removeprefix("W/") for each in tags.decode("latin-1").split(",")}
    return tag in named or "*" in named
