"""How changes are written down: server-sent events, and the place a listener has come to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

RETRY = b"retry: 2000\n\n"
"""Tells a listener how many milliseconds to wait before it comes back."""
HEARTBEAT = b":\n\n"
"""A comment, which keeps the connection from being taken for dead."""
PROBLEM = "problem"
"""The event that says why a topic, or the whole stream, has come to its end."""
STORE = "store"
"""The event that says that the store does not answer, or answers again."""

_NONE = "-"
_PLACE = re.compile(r"(?:[0-9a-f]{16}|-)(?:\.(?:[0-9a-f]{16}|-))*", re.ASCII)
_MOMENT = "at"
"""Field that says when somebody looked: alone it is no change."""


def mark_of(body: object) -> str:
    """Tell one content from another, whenever it was looked at."""
    plain: object = msgspec.to_builtins(body)
    if isinstance(plain, dict):
        plain.pop(_MOMENT, None)  # pyright: ignore[reportUnknownMemberType]
    return hashlib.blake2b(msgspec.json.encode(plain), digest_size=8).hexdigest()


def event(name: str, data: bytes, place: str) -> bytes:
    """Write one event; JSON as we write it has no line breaks."""
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), place.encode(), data)


def written(topics: Sequence[str], marks: Mapping[str, str]) -> str:
    """Write down which content of each topic a listener has."""
    return ".".join(marks.get(topic, _NONE) for topic in topics)


def read(place: str, topics: Sequence[str]) -> dict[str, str]:
    """Read what a listener says that it has; what is not of these topics says nothing."""
    if not _PLACE.fullmatch(place):
        return {}
    marks = place.split(".")
    if len(marks) != len(topics):
        return {}
    return {topic: mark for topic, mark in zip(topics, marks, strict=True) if mark != _NONE}
