"""The rules for names and sizes, decided once and used by every way in."""

from __future__ import annotations

import unicodedata
from datetime import datetime

from lamplighter.model.errors import InvalidInput, InvalidName

NAME_LIMIT = 64
KEY_LIMIT = 256
WORDS_LIMIT = 1_000
PAYLOAD_LIMIT = 64 * 1024
TAG_COUNT_LIMIT = 20
DEFAULT_TENANT = "default"
DEFAULT_QUEUE = "default"

_DOTS = frozenset({".", ".."})
"""Names that no address can have as a part of its path: programs resolve them on their way."""
_SHOWN = 40
_CONTROL = frozenset(chr(c) for c in (*range(32), *range(127, 160)))


def shown(value: object) -> str:
    """Return a short, printable form of any value for an error message."""
    text = value if isinstance(value, str) else _written(value)
    text = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text[: _SHOWN + 1])
    return f"`{text[:_SHOWN]}…`" if len(text) > _SHOWN else f"`{text}`"


def _written(value: object) -> str:
    """Write an instant as people write it, and anything else as Python does."""
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def check_name(what: str, value: object) -> str:
    """Return a valid queue, type, tenant or tag name, or say what is wrong with it."""
    return _check(what, value, NAME_LIMIT)


def check_key(value: object) -> str:
    """Return a valid idempotency key, or say what is wrong with it."""
    return _check("idempotency key", value, KEY_LIMIT)


def check_schedule(value: object) -> str:
    """Return a valid id of a schedule, or say what is wrong with it."""
    return _check("schedule id", value, KEY_LIMIT)


def check_words(what: str, value: object) -> str:
    """Return a valid note of an operator (who, why), or say what is wrong with it."""
    if isinstance(value, str) and len(value) <= WORDS_LIMIT and not _CONTROL.intersection(value):
        return value
    raise InvalidInput(
        f"the {what} {shown(value)} cannot be noted",
        hint=f"give text of at most {WORDS_LIMIT} characters on one line",
        value=value,
    )


def _check(what: str, value: object, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidName(
            f"{what} {shown(value)} is a {type(value).__name__}, not text",
            hint=f"give the {what} as a string of 1 to {limit} characters",
            value=value,
        )
    if value.isascii() and value.isprintable() and 0 < len(value) <= limit and value not in _DOTS:
        return value
    if value in _DOTS:
        raise InvalidName(
            f"the {what} is {shown(value)}, which cannot stand in an address",
            hint="use any other name; dots may stand beside other characters",
            value=value,
        )
    if not value:
        raise InvalidName(f"the {what} is empty", hint=f"give 1 to {limit} characters", value=value)
    if len(value) > limit:
        raise InvalidName(
            f"{what} {shown(value)} has {len(value)} characters, the limit is {limit}",
            hint=f"shorten the {what} to at most {limit} characters",
            value=value,
        )
    for character in value:
        if character in _CONTROL or unicodedata.category(character) == "Cs":
            raise InvalidName(
                f"{what} {shown(value)} contains the control character U+{ord(character):04X}",
                hint="use any Unicode text without control characters",
                value=value,
            )
    return value
