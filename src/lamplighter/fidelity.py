"""Whether a value that was written as JSON comes back as what it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import NamedTuple, cast

import msgspec

ARRAYS = (list, tuple)
"""What JSON has one thing for: either may come back as the other."""


class Change(NamedTuple):
    """Where a value would come back as something else."""

    path: str
    given: object
    came: object


def first_change(given: object, came: object, path: str) -> Change | None:
    """Return the first of the `changes`, or None."""
    return next(changes(given, came, path), None)


def changes(given: object, came: object, path: str) -> Iterator[Change]:
    """Compare a value that was written with what its reader gets, and yield what has changed.

    What is JSON data may be read as anything: that is what annotations are for. What is not has
    to come back as what it was, a tuple as a list at least, and a whole number as that number.
    """
    if isinstance(given, Enum) or (
        given is not None and not isinstance(given, (str, int, float, dict, list, tuple))
    ):
        yield from _changes_of_object(given, came, path)
    elif isinstance(given, dict):
        for key, item in cast("dict[object, object]", given).items():
            part = _part(came, key)
            if part is not _MISSING:
                yield from changes(item, part, f"{path}.{key}")
    elif isinstance(given, (list, tuple)):
        array = cast("list[object]", given)
        if type(array) not in ARRAYS and type(came) is not type(array):
            yield Change(path, array, came)
        elif isinstance(came, (list, tuple)):
            pairs = zip(array, cast("list[object]", came), strict=False)
            for number, (item, part) in enumerate(pairs):
                yield from changes(item, part, f"{path}[{number}]")
    elif isinstance(given, int) and isinstance(came, float) and int(came) != given:
        yield Change(path, given, came)


def _changes_of_object(given: object, came: object, path: str) -> Iterator[Change]:
    if is_bytes(given):
        same = is_bytes(came) and bytes(cast("bytes", came)) == bytes(cast("bytes", given))
    elif isinstance(given, (set, frozenset)):
        same = isinstance(came, (set, frozenset)) and came == given
    else:
        names = _fields(given)
        if names is not None and type(came) is type(given):
            for name in names:
                yield from changes(getattr(given, name), getattr(came, name), f"{path}.{name}")
            return
        same = names is None and _equal(given, came)
    if not same:
        yield Change(path, given, came)


def holds_bytes(value: object) -> bool:
    """Tell whether a value is bytes, or has some in it."""
    if isinstance(value, dict):
        parts: Iterable[object] = cast("dict[object, object]", value).values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = cast("Iterable[object]", value)
    else:
        parts = [getattr(value, name, None) for name in _fields(value) or ()]
    return is_bytes(cast("object", value)) or any(holds_bytes(part) for part in parts)


def is_bytes(value: object) -> bool:
    """Tell whether a value is bytes, of whatever kind."""
    return isinstance(value, (bytes, bytearray, memoryview))


def _fields(value: object) -> Iterable[str] | None:
    """Return the names of what an object consists of; None for one that is a single value."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    if hasattr(value, "model_dump"):
        return cast("Iterable[str]", getattr(type(value), "model_fields", {}))
    return None


def _equal(given: object, came: object) -> bool:
    if isinstance(given, datetime) and isinstance(came, datetime) and given.fold != came.fold:
        # Without a zone it tells one of two hours, and equality does not look at it.
        return given.tzinfo is not None and given == came
    try:
        return bool(given == came)
    except Exception:  # noqa: BLE001 - comparing runs foreign code
        return False


_MISSING = object()


def _part(whole: object, key: object) -> object:
    """Return what became of an item of a dict: an item, or an attribute of what it was read as."""
    if isinstance(whole, Mapping):
        return cast("Mapping[object, object]", whole).get(key, _MISSING)
    return getattr(whole, str(key), _MISSING)
