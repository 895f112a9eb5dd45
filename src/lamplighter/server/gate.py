"""The gate: what a request may look like, checked before anything is made of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from starlette.types import Receive, Scope

from lamplighter.config import Settings
from lamplighter.model.names import shown
from lamplighter.server.deadlines import Deadlines
from lamplighter.server.errors import (
    BodyTooLarge,
    HeadersTooLarge,
    LimitExceeded,
    MalformedBody,
    SlowRequest,
    UrlTooLong,
)

_TOKEN = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"(?:[ \t\n\r]*+:)?|[\[\]{}]|[-+.0-9][-+.0-9eE]*+|[a-zA-Z]++|"', re.DOTALL
)
"""What matters of JSON: texts, with the colon that makes them keys; brackets; numbers; words, as
null is one. A quote alone begins a text that does not end."""
_SPACES = frozenset({b" ", b"\t", b"\n", b"\r"})
_OPENING = frozenset({b"{", b"["})
_CLOSING = frozenset({b"}", b"]"})
_IN_A_THREAD = 16 * 1024
"""Bytes from which looking takes so long that others should not wait for it."""
_ASIDE = ThreadPoolExecutor(1, thread_name_prefix="lamplighter-gate")
"""Where that is done, for one body after the other: together they would hold up everything else."""
_BATCHES = ThreadPoolExecutor(1, thread_name_prefix="lamplighter-batches")
"""The same for batches: a single job does not wait behind them."""
JOBS_IN_FULL = 20
"""Jobs with as many values as a job may have that a batch can be full of: what is made of them
needs many times the room of the text."""


def check_head(scope: Scope, settings: Settings) -> None:
    """Refuse a request whose address or headers are too large."""
    length = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    if length > settings.http_url_bytes:
        raise UrlTooLong(
            f"path and query have {length:,} bytes, the limit is {settings.http_url_bytes:,}",
            hint="ask for less at once; the setting `http_url_bytes` has the limit",
            value=length,
        )
    size = 0
    for name, value in scope["headers"]:
        size += len(name) + len(value)
    if size > settings.http_header_bytes:
        raise HeadersTooLarge(
            f"the headers have {size:,} bytes, the limit is {settings.http_header_bytes:,}",
            hint="leave out what is not needed; the setting `http_header_bytes` has the limit",
            value=size,
        )


async def read_body(
    receive: Receive, declared: bytes | None, limit: int, deadlines: Deadlines
) -> bytes:
    """Read a body of at most that many bytes, in time."""
    if declared is not None and declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(f"{int(declared[:20]):,}", limit)
    chunks: list[bytes] = []
    size = 0
    try:
        with deadlines():
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
            f"the body did not arrive within {deadlines.seconds:g} s",
            hint="send it faster; the setting `http_body_timeout` has the limit",
            value=size,
        ) from None
    return b"".join(chunks)


async def check_json(body: bytes, settings: Settings, *, items: bool = False) -> None:
    """Refuse JSON that is too deep, has too many values, or texts and numbers that are too long.

    With ``items`` the body is a list, or one document per line: each of them is measured alone,
    and they are counted.
    """
    if len(body) > _IN_A_THREAD:
        loop = asyncio.get_running_loop()
        thread = _BATCHES if items else _ASIDE
        await loop.run_in_executor(thread, partial(look, body, settings, items=items))
    else:
        look(body, settings, items=items)


def look(body: bytes, settings: Settings, *, items: bool = False) -> None:
    """Look at every text, number and bracket once, and stop at the first that is too much."""
    if not items and _is_plain(body, settings):
        return
    ground = 1 if items and body.lstrip()[:1] == b"[" else 0
    depth = keys = values = together = began = number = 0
    names: list[set[bytes]] = []
    for found in _TOKEN.finditer(body):
        token = found[0]
        if token in _CLOSING:
            depth -= 1
            if depth < 0:
                raise _malformed(f"a bracket at byte {found.start()} closes nothing")
            names.pop()
            if items and depth == ground and found.end() - began > settings.http_body_bytes:
                raise _too_large(f"{found.end() - began:,}", settings.http_body_bytes)
            continue
        values += 1
        if values > settings.http_json_values:
            raise _beyond("more values", settings.http_json_values, "http_json_values")
        if token in _OPENING:
            if depth == ground:
                together += values
                _check_together(together, settings.http_json_values)
                keys, values, began, number = 0, 1, found.start(), number + items
                _check_number(number, settings.http_batch_jobs)
            depth += 1
            if depth > settings.http_json_depth + ground:
                raise _beyond("nested deeper", settings.http_json_depth, "http_json_depth")
            names.append(set())
        elif token[:1] == b'"':
            keys += _check_text(token, found.start(), names, settings.http_json_string)
            if keys > settings.http_json_keys:
                raise _beyond("more keys", settings.http_json_keys, "http_json_keys")
        else:
            _check_digits(token, settings.http_json_digits)


def _is_plain(body: bytes, settings: Settings) -> bool:
    """Tell whether a body is certainly within all limits, as nearly all are: a quick look."""
    opened = body.count(b"{") + body.count(b"[")
    if (
        len(body)
        > min(settings.http_json_string, settings.http_json_keys, settings.http_json_values)
        or opened > settings.http_json_depth
        or opened != body.count(b"}") + body.count(b"]")
        or b"\\" in body
    ):
        return False
    # Without escapes every second part is a text, and numbers are in those between.
    parts = body.split(b'"')
    between = parts[::2]
    if len(parts) % 2 == 0 or max(map(len, between)) > settings.http_json_digits:
        return False
    starts = [part[:1] for part in between]
    keys = [text for text, start in zip(parts[1::2], starts[1:], strict=True) if start == b":"]
    return len(keys) == len(set(keys)) and _SPACES.isdisjoint(starts[1:])


def _check_number(jobs: int, most: int) -> None:
    """Refuse a batch of too many jobs, before any of them is made."""
    if jobs > most:
        raise LimitExceeded(
            f"the batch has more than {most:,} jobs",
            hint="send several batches; the setting `http_batch_jobs` has the limit",
            value=most,
        )


def _check_together(values: int, most: int) -> None:
    """Refuse a batch whose jobs have too much in them, taken together."""
    if values > JOBS_IN_FULL * most:
        raise LimitExceeded(
            f"the jobs of the batch have more than {JOBS_IN_FULL * most:,} values together",
            hint=f"send several batches; the limit is {JOBS_IN_FULL} times the setting "
            "`http_json_values`",
            value=JOBS_IN_FULL * most,
        )


def _check_digits(token: bytes, most: int) -> None:
    """Refuse a number that is too long; what a word is, is told by whoever reads it."""
    if len(token) > most and not token.isalpha():
        raise _beyond("a number longer", most, "http_json_digits")


def _check_text(token: bytes, at: int, names: list[set[bytes]], longest: int) -> bool:
    """Check a text and tell whether it is a key, which an object may have only once."""
    if len(token) > longest:
        raise _beyond("a text longer", longest, "http_json_string")
    if token == b'"':
        raise _malformed(f"the text that begins at byte {at} does not end")
    if token[-1:] != b":" or not names:
        return False
    name = token[:-1].rstrip()
    if b"\\" in name:
        name = _unescaped(name, at)
    if name in names[-1]:
        text = name.decode("utf-8", "replace")[1:-1]
        raise MalformedBody(
            f"the key {shown(text)} stands twice in one object",
            hint="give every key once",
            value=text,
        )
    names[-1].add(name)
    return True


def _unescaped(name: bytes, at: int) -> bytes:
    """Return a key as it is without escapes, in quotes: one key can be written in many ways."""
    try:
        return b'"%b"' % json.loads(name).encode("utf-8", "surrogatepass")
    except ValueError:
        raise _malformed(f"the key at byte {at} cannot be read") from None


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """Return the value of a header, or None; the name is in small letters."""
    for found, value in headers:
        if found == name:
            return value
    return None


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
