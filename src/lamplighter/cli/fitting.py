"""Whether arguments fit what the workers have published about a type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamplighter.model.errors import InvalidArguments
from lamplighter.model.names import shown

Schema = Mapping[str, Any]


def check_names(name: str, arguments: Mapping[str, object], versions: Sequence[Schema]) -> None:
    """Refuse arguments whose names fit no version of a type; the workers check the values."""
    if not versions or any(_fit(arguments, schema) for schema in versions):
        return
    schema = versions[0]
    needed = schema.get("required", [])
    taken = ", ".join(
        one if one in needed else f"{one} (optional)" for one in schema.get("properties", {})
    )
    given = ", ".join(arguments) or "none"
    raise InvalidArguments(
        f"the arguments do not fit {shown(name)}: given were {given}",
        hint=f"it takes {taken or 'no arguments'}; --force lets them through",
        value=given,
    )


def _fit(arguments: Mapping[str, object], schema: Schema) -> bool:
    known, needed = schema.get("properties", {}), schema.get("required", [])
    open_ended = bool(schema.get("additionalProperties", True))
    return arguments.keys() >= set(needed) and (open_ended or arguments.keys() <= known.keys())
