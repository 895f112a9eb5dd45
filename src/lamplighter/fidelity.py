"""Whether a value that was written as JSON comes back as what it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
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
    """Compare a value that was written with what its reader gets, and return the first change.

    What is JSON data may be read as anything: that is what annotations are for. What is not has
    to come back as what it was, a tuple as a list at least.
    """
    if isinstance(given, Enum) or (
        given is not None and not isinstance(given, (str, int, float, dict, list, tuple))
    ):
        return _changed_object(given, came, path)
    if isinstance(given, dict):
        items = cast("dict[object, object]", given).items()
        parts = ((key, _part(came, key), item) for key, item in items)
        return _first(
            first_change(item, part, f"{path}.{key}")
            for key, part, item in parts
            if part is not _MISSING
        )
    if isinstance(given, (list, tuple)):
        array = cast("list[object]", given)
        if type(array) not in ARRAYS and type(came) is not type(array):
            return Change(path, array, came)
        if isinstance(came, (list, tuple)):
            pairs = enumerate(zip(array, cast("list[object]", came), strict=False))
            return _first(first_change(item, part, f"{path}[{n}]") for n, (item, part) in pairs)
    return None


def _changed_object(given: object, came: object, path: str) -> Change | None:
    if is_bytes(given):
        same = is_bytes(came) and bytes(cast("bytes", came)) == bytes(cast("bytes", given))
    elif isinstance(given, (set, frozenset)):
        same = isinstance(came, (set, frozenset)) and came == given
    else:
        names = _fields(given)
        if names is not None and type(came) is type(given):
            return _first(
                first_change(getattr(given, name), getattr(came, name), f"{path}.{name}")
                for name in names
            )
        same = names is None and _equal(given, came)
    return None if same else Change(path, given, came)


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


def _first(changes: Iterable[Change | None]) -> Change | None:
    return next((change for change in changes if change is not None), None)
