"""What of a body does not fit: where it stands, and the value there."""

from __future__ import annotations

import re

import msgspec

from lamplighter.model.names import shown
from lamplighter.server.errors import InvalidBody

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_FIELD = re.compile(r"field `(.+)`$")
_UNQUOTED = re.compile(r"\.arguments\b")

_items = msgspec.json.Decoder(list[msgspec.Raw])
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)


def misfit(error: msgspec.ValidationError, body: bytes, *, lines: bool) -> InvalidBody:
    """Make the error for a body that is JSON, but not what the route takes."""
    cause, _, place = str(error).partition(" - at ")
    place = place.strip("`")
    field = _FIELD.search(cause)
    value = field[1] if field else _value(body, place, lines=lines)
    where = f", at `{place}`" if place else ""
    said = "" if field or value is None else f": {shown(value)}"
    return InvalidBody(
        f"the body does not fit: {cause}{where}{said}",
        hint="GET /v1/openapi.json says what this route takes",
        value=value or place or None,
    )


def _value(body: bytes, place: str, *, lines: bool) -> str | None:
    """Return the value at a place, as it was written; None: more than one, perhaps secret, or none.

    Only what is on the way to it is read once more.
    """
    if _UNQUOTED.search(place):
        return None
    try:
        raw: bytes | msgspec.Raw = body
        for name, index in _STEP.findall(place):
            if name:
                raw = _fields.decode(raw)[name]
            else:
                raw = (_lines(body) if lines and raw is body else _items.decode(raw))[int(index)]
        written = bytes(raw).strip()
        if written[:1] in {b"[", b"{"}:
            return None
        return _text.decode(written) if written[:1] == b'"' else written.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError):
        # What was refused may be no text at all.
        return None


def _lines(body: bytes) -> list[bytes]:
    return [line for line in body.splitlines() if line.strip()]
