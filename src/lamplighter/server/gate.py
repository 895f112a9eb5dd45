"""The gate: what a request may look like, checked before anything is made of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any

from starlette.types import Receive, Scope

from lamplighter.config import Settings
from lamplighter.model.names import shown
from lamplighter.server.errors import (
    BodyTooLarge,
    HeadersTooLarge,
    LimitExceeded,
    MalformedBody,
    SlowRequest,
    UrlTooLong,
)

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"(?:[ \t\n\r]*+:)?|[\[\]{}]|[-+.0-9eE]++|"', re.DOTALL)
"""What matters of JSON: texts, with the colon that makes them keys; brackets; numbers. A quote
alone begins a text that does not end."""
_OPENING = frozenset({b"{", b"["})
_CLOSING = frozenset({b"}", b"]"})
_IN_A_THREAD = 256 * 1024
"""Bytes from which looking takes so long that others should not wait for it."""


def check_head(scope: Scope, settings: Settings) -> None:
    """Refuse a request whose address or headers are too large."""
    length = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    if length > settings.http_url_bytes:
        raise UrlTooLong(
            f"path and query have {length:,} bytes, the limit is {settings.http_url_bytes:,}",
            hint="ask for less at once; the setting `http_url_bytes` has the limit",
            value=length,
        )
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size > settings.http_header_bytes:
        raise HeadersTooLarge(
            f"the headers have {size:,} bytes, the limit is {settings.http_header_bytes:,}",
            hint="leave out what is not needed; the setting `http_header_bytes` has the limit",
            value=size,
        )


async def read_body(receive: Receive, declared: bytes | None, limit: int, seconds: float) -> bytes:
    """Read a body of at most that many bytes in at most that many seconds."""
    if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(f"{int(declared[:20]):,}", limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message: Any = await receive()
                chunk: bytes = message.get("body", b"")
                size += len(chunk)
                if size > limit:
                    raise _too_large(f"at least {size:,}", limit)
                chunks.append(chunk)
                more = message.get("more_body", False)
                if message["type"] == "http.disconnect":
                    raise MalformedBody("the body is cut short", hint="send the body to its end")
    except TimeoutError:
        raise SlowRequest(
            f"the body did not arrive within {seconds:g} s",
            hint="send it faster; the setting `http_body_timeout` has the limit",
            value=size,
        ) from None
    return b"".join(chunks)


async def check_json(body: bytes, settings: Settings, *, items: bool = False) -> None:
    """Refuse JSON that is too deep, has too many keys, or texts and numbers that are too long.

    With ``items`` the body is a list, or one document per line: each of them is measured alone.
    """
    if len(body) > _IN_A_THREAD:
        await asyncio.to_thread(look, body, settings, items=items)
    else:
        look(body, settings, items=items)


def look(body: bytes, settings: Settings, *, items: bool = False) -> None:
    """Look at every text, number and bracket once, and stop at the first that is too much."""
    ground = 1 if items and body.lstrip()[:1] == b"[" else 0
    depth = keys = began = 0
    names: list[set[bytes]] = []
    for found in _TOKEN.finditer(body):
        token = found[0]
        if token in _OPENING:
            if depth == ground:
                keys, began = 0, found.start()
            depth += 1
            if depth > settings.http_json_depth + ground:
                raise _beyond("nested deeper", settings.http_json_depth, "http_json_depth")
            names.append(set())
        elif token in _CLOSING:
            depth -= 1
            if depth < 0:
                raise _malformed(f"a bracket at byte {found.start()} closes nothing")
            names.pop()
            if items and depth == ground and found.end() - began > settings.http_body_bytes:
                raise _too_large(f"{found.end() - began:,}", settings.http_body_bytes)
        elif token[:1] != b'"':
            if len(token) > settings.http_json_digits:
                raise _beyond("a number longer", settings.http_json_digits, "http_json_digits")
        else:
            keys += _check_text(token, found.start(), names, settings.http_json_string)
            if keys > settings.http_json_keys:
                raise _beyond("more keys", settings.http_json_keys, "http_json_keys")


def _check_text(token: bytes, at: int, names: list[set[bytes]], longest: int) -> bool:
    """Check a text and tell whether it is a key, which an object may have only once."""
    if len(token) > longest:
        raise _beyond("a text longer", longest, "http_json_string")
    if token == b'"':
        raise _malformed(f"the text that begins at byte {at} does not end")
    if token[-1:] != b":" or not names:
        return False
    name = token[:-1].rstrip()
    if name in names[-1]:
        text = name.decode("utf-8", "replace")[1:-1]
        raise MalformedBody(
            f"the key {shown(text)} stands twice in one object",
            hint="give every key once",
            value=text,
        )
    names[-1].add(name)
    return True


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Give the value of a header, or None; the name is in small letters."""
    return next((value for found, value in headers if found == name), None)


def _too_large(size: str, limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body, or one job in it, has {size} bytes, the limit is {limit:,}",
        hint="store large data elsewhere and submit where it is, or send smaller batches; the "
        "settings `http_body_bytes` and `http_batch_bytes` have the limits",
        value=size,
    )


def _beyond(what: str, limit: int, setting: str) -> LimitExceeded:
    return LimitExceeded(
        f"the JSON in the body is, or has, {what} than {limit:,}",
        hint=f"send simpler data; the setting `{setting}` has the limit",
        value=limit,
    )


def _malformed(why: str) -> MalformedBody:
    return MalformedBody(f"the body is not JSON: {why}", hint="send a JSON document")
