"""Whether arguments fit what the workers have published about a type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lamplighter import payload
from lamplighter.model import versions
from lamplighter.model.errors import InvalidArguments
from lamplighter.model.names import shown

Schema = Mapping[str, Any]


def check_fit(name: str, arguments: Mapping[str, object], schemas: Sequence[Schema]) -> None:
    """Refuse arguments whose names or JSON types fit no version of a type.

    The workers check the values. Values are not repeated here: they may be secret.
    """
    args = payload.encode(arguments)
    published = [json.dumps(schema) for schema in schemas]
    if not published or any(versions.accepts(schema, args) for schema in published):
        return
    if any(_named_as(arguments, schema) for schema in schemas):
        given = versions.signature_of(name, args)
        taken = " or ".join(dict.fromkeys(versions.signature(name, one) for one in published))
    else:
        given = ", ".join(arguments) or "none"
        taken = _names(schemas[0]) or "no arguments"
    raise InvalidArguments(
        f"the arguments do not fit {shown(name)}: given were {given}",
        hint=f"it takes {taken}; --force lets them through",
        value=given,
    )


def _names(schema: Schema) -> str:
    needed = schema.get("required", [])
    return ", ".join(
        one if one in needed else f"{one} (optional)" for one in schema.get("properties", {})
    )


def _named_as(arguments: Mapping[str, object], schema: Schema) -> bool:
    known, needed = schema.get("properties", {}), schema.get("required", [])
    open_ended = bool(schema.get("additionalProperties", True))
    return arguments.keys() >= set(needed) and (open_ended or arguments.keys() <= known.keys())
