"""What the schemas of msgspec leave out, for the OpenAPI document and the clients made from it.

Generators take an object without `additionalProperties` for an empty one, and a field with a
default for one that is always there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast, get_args, get_type_hints

import msgspec

from lamplighter.config import Settings
from lamplighter.model.names import (
    KEY_LIMIT,
    NAME_LIMIT,
    PAYLOAD_LIMIT,
    TAG_COUNT_LIMIT,
    WORDS_LIMIT,
)
from lamplighter.model.recurring import KEEP_LIMIT
from lamplighter.model.retry import LONGEST_DELAY
from lamplighter.model.schedule import expression, rules
from lamplighter.model.schedule.zones import zone_names
from lamplighter.server.calendars import LONGEST
from lamplighter.server.reading import MOST_PARAMETERS

Schema = dict[str, Any]

_USUAL = Settings()
"""Limits that are settings are told as they are by default."""
_NAME = {"minLength": 1, "maxLength": NAME_LIMIT}
_KEY = {"minLength": 1, "maxLength": KEY_LIMIT}
_PAUSE = {"minimum": 0, "maximum": LONGEST_DELAY}
_TIME = {"minimum": 0.001, "maximum": LONGEST_DELAY}
_KEPT = {"minimum": 0, "maximum": KEEP_LIMIT}
_TAKEN = frozenset(
    {
        "Submission",
        "NewScheduleBody",
        "PreviewBody",
        "ScheduleChange",
        "JobSchedule",
        "RetryPolicy",
        "DeadChoice",
        "JobChange",
        "JobChoice",
        "QueueChange",
    }
)
"""What callers send, where names are checked."""
_LIMITS: Mapping[str, Mapping[str, object]] = {
    "type": _NAME,
    "queue": _NAME,
    "tenant": _NAME,
    "tag": _NAME,
    "tags": _NAME,
    "fingerprint": _NAME,
    "schedule": _KEY,
    "reason": {"maxLength": WORDS_LIMIT},
    "id": _KEY,
    "idempotency_key": _KEY,
    "cron": {"minLength": 1, "maxLength": expression.LONGEST},
    "rrule": {"minLength": 1, "maxLength": rules.LONGEST},
    "every": {"minimum": 1, "maximum": LONGEST, "multipleOf": 1},
    "delay": {"minimum": 0},
    "timeout": _TIME,
    "max_wait_seconds": _TIME,
    "max_attempts": {"minimum": 1},
    "delays": _PAUSE,
    "fixed": _PAUSE,
    "base": _PAUSE,
    "factor": {**_PAUSE, "minimum": 1},
    "cap": _PAUSE,
    "max_runs": {"minimum": 1},
    "hold_after": {"minimum": 1},
    "window": _PAUSE,
    "jitter": _PAUSE,
    "keep_succeeded": _KEPT,
    "keep_failed": _KEPT,
}
_LISTS: Mapping[str, Mapping[str, object]] = {"tags": {"maxItems": TAG_COUNT_LIMIT}}
_BODIES: Mapping[str, Mapping[str, object]] = {
    # The gate counts the quotes too.
    "string": {"maxLength": _USUAL.http_json_string - 2},
    "array": {"maxItems": _USUAL.http_json_values},
}
"""Limits of whatever has none of its own in a body…"""
_QUERIES: Mapping[str, Mapping[str, object]] = {
    "string": {"maxLength": _USUAL.http_url_bytes},
    "array": {"maxItems": MOST_PARAMETERS},
}
"""…and in a query."""
_QUERY_LIMITS: Mapping[str, Mapping[str, object]] = {
    "reason": {"maxLength": WORDS_LIMIT},
    "tag": _NAME,
    "tenant": _NAME,
    "type": _NAME,
    "queue": _NAME,
    "fingerprint": _NAME,
    "schedule": _KEY,
    "prefix": {"maxLength": KEY_LIMIT},
}
_SIZED = frozenset({"arguments", "metadata", "delays", "no_retry_on"})
_SIZE = (
    "Arguments, metadata and the lists of a retry policy may have "
    f"{PAYLOAD_LIMIT // 1024} KiB together, as JSON."
)
_NUMBERS = frozenset({"number", "integer"})
_CLOSED = frozenset({"enum", "const", "format"})
"""What limits a text by itself."""


def complete(components: Mapping[str, Schema], kinds: Iterator[type[msgspec.Struct]]) -> None:
    """Say in each schema what it leaves out."""
    for kind in kinds:
        if kind.__name__ in components:
            _say_times(components[kind.__name__], kind)
    limits = {**_LIMITS, "timezone": {"minLength": 1, "maxLength": max(map(len, zone_names()))}}
    for name, schema in components.items():
        _open_objects(schema)
        for field, described in _properties(schema):
            _move_default(described)
            if name in _TAKEN:
                _bound(described, limits.get(field, {}), _BODIES, _LISTS.get(field, {}))
                if field in _SIZED:
                    described["description"] = f"{described.get('description', '')} {_SIZE}".strip()


def bound_parameter(name: str, schema: Schema) -> None:
    """Add the limits of a parameter of a query."""
    _bound(schema, _QUERY_LIMITS.get(name, {}), _QUERIES)


def _bound(
    schema: Schema,
    limits: Mapping[str, object],
    usual: Mapping[str, Mapping[str, object]],
    of_list: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Add limits to a text or a number, or to the items of a list and to the list itself.

    Those that are declared stay as they are.
    """
    for each in (schema, *cast("list[Schema]", schema.get("anyOf", []))):
        kind = each.get("type")
        if kind == "array":
            _add(each, {**usual[kind], **of_list})
            _bound(each["items"], limits, usual)
        elif kind == "string" and _CLOSED.isdisjoint(each):
            _add(each, limits if "maxLength" in limits else usual[kind])
        elif kind in _NUMBERS and "maxLength" not in limits:
            _add(each, limits)


def _add(schema: Schema, limits: Mapping[str, object]) -> None:
    for name, limit in limits.items():
        schema.setdefault(name, limit)


def _properties(schema: Schema) -> list[tuple[str, Schema]]:
    return list(cast("dict[str, Schema]", schema.get("properties", {})).items())


def _say_times(schema: Schema, kind: type[msgspec.Struct]) -> None:
    hints = get_type_hints(kind)
    named = {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}
    for field, described in _properties(schema):
        hint = named.get(field)
        if hint is datetime or datetime in get_args(hint):
            for each in (described, *cast("list[Schema]", described.get("anyOf", []))):
                if each.get("type") == "string":
                    each["format"] = "date-time"


def _open_objects(schema: Any) -> None:
    if isinstance(schema, list):
        for each in cast("list[Any]", schema):
            _open_objects(each)
    elif isinstance(schema, dict):
        found = cast("Schema", schema)
        if found.get("type") == "object" and "properties" not in found:
            found.setdefault("additionalProperties", True)
        for each in found.values():
            _open_objects(each)


def _move_default(schema: Schema) -> None:
    """Tell the default in words: a field that has one may be left out all the same."""
    if "default" not in schema:
        return
    value = schema.pop("default")
    if value not in (None, [], {}):
        words = f"By default `{msgspec.json.encode(value).decode()}`."
        schema["description"] = f"{schema.get('description', '')} {words}".strip()
