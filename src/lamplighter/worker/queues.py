"""Read which queues a worker serves, as users write it."""

from __future__ import annotations

import re

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import check_name, shown
from lamplighter.model.stride import MAX_WEIGHT, MIN_WEIGHT, QueueStride

_FORM = "write `a,b` to empty a before b, or `a=3,b=1` to share by weight"
_SIGNS = {"%2C": ",", "%3D": "=", "%25": "%"}
"""How signs are written that would otherwise separate names and weights."""
_WRITTEN = re.compile("|".join(_SIGNS), re.IGNORECASE)


def parse(text: str) -> QueueStride:
    """Read `a,b` as strict order and `a=3,b=1` as shares; `%2C` and `%3D` are `,` and `=`."""
    parts = [part.strip() for part in text.split(",")]
    weighted = ["=" in part for part in parts]
    if any(weighted) and not all(weighted):
        raise InvalidOption(
            f"some of the queues {shown(text)} have a weight and some have none",
            hint=f"{_FORM}; a `=` in a name is written `%3D`",
            value=text,
        )
    names = tuple(check_name("queue", _name(part)) for part in parts)
    if len(set(names)) < len(names):
        raise InvalidOption(f"a queue is named twice in {shown(text)}", hint=_FORM, value=text)
    if not any(weighted):
        return QueueStride(names)
    return QueueStride(names, tuple(_weight(part.rpartition("=")[2], text) for part in parts))


def _name(part: str) -> str:
    name = part.rpartition("=")[0].strip() if "=" in part else part
    return _WRITTEN.sub(lambda sign: _SIGNS[sign.group().upper()], name)


def _weight(given: str, text: str) -> int:
    if given.strip().isascii() and given.strip().isdigit():
        weight = int(given)
        if MIN_WEIGHT <= weight <= MAX_WEIGHT:
            return weight
    raise InvalidOption(
        f"the weight {shown(given)} in {shown(text)} is not a number from "
        f"{MIN_WEIGHT} to {MAX_WEIGHT}",
        hint=_FORM,
        value=text,
    )
