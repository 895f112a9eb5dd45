"""Read which queues a worker serves, as users write it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from lamplighter.model.errors import InvalidOption
from lamplighter.model.names import check_name, shown
from lamplighter.model.stride import MAX_WEIGHT, MIN_WEIGHT, QueueStride
from lamplighter.registry import Registry

MOST_NAMED = 10
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


def misfits(asked: Sequence[str], registry: Registry) -> list[str]:
    """Say which of the queues asked for no type of the program has as its own."""
    homes = sorted({registry.get(name).queue for name in registry.names()})
    told: list[str] = []
    for queue in asked:
        if queue not in homes:
            near = difflib.get_close_matches(queue, homes, n=1)
            guess = f"did you mean `{near[0]}`? " if near else ""
            listed = ", ".join(f"`{home}`" for home in homes[:MOST_NAMED]) or "none"
            told.append(
                f"--queues names `{queue}`, which no type of this program has as its queue: only "
                f"jobs submitted with queue=… come there. {guess}The queues of its types: {listed}"
            )
    return told


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
